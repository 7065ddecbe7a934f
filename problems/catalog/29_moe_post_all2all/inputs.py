import torch

from problems import routing
from problems.leaves import Made


def _route(size, draw, weights):
    """Experts (M, K) and the map (E, M): some tokens name an expert twice, some are dropped."""
    experts = routing.preferences(draw, size.M, weights)[:, : size.K].contiguous()
    twice = draw.mask(size.M, 0.06)
    experts[twice, size.K - 1] = experts[twice, 0]
    cells = torch.zeros(size.M, size.E, dtype=torch.bool).scatter_(1, experts, True)
    cells[draw.mask(size.M, 0.06)] = False
    return experts, cells.t().contiguous()


def _mapping(routing_map):
    tokens = torch.arange(routing_map.shape[1]).expand_as(routing_map)
    return tokens[routing_map]


def build(size, world, draw):
    weights = routing.popularity(draw, size.E)
    routes = [_route(size, draw, weights) for _ in range(world)]
    counts = torch.stack([cells.sum(1) for _, cells in routes])
    ranks = []
    for (experts, cells), (sent, received, rows) in zip(
        routes, routing.expert_parallel_plan(counts), strict=True
    ):
        outputs = draw.values((sum(received), size.N))
        slots = draw.uniform((size.M, size.K), 0.05, 1.0, torch.bfloat16)
        shape = Made("size", {"dims": [size.M, size.N]})
        ranks.append(
            [outputs, slots, experts, size.E, sent, received, rows, cells, _mapping(cells), shape, None]
        )
    return ranks


def upstream(size, world, trial):
    copies = size.K * size.M
    splits = [copies // world] * world
    splits[-1] += copies % world
    cells = [copies // size.E + (cell < copies % size.E) for cell in range(size.E)]
    rows = torch.tensor(cells).view(world, size.E // world)
    shape = Made("size", {"dims": [size.M, size.N]})
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 29 + rank + 1000003 * trial)
        experts = torch.stack([torch.randperm(size.E)[: size.K] for _ in range(size.M)])
        experts = experts.sort(1).values
        slots = torch.stack([torch.randn(size.K, dtype=torch.bfloat16).softmax(0) for _ in range(size.M)])
        routed = torch.zeros(size.M, size.E, dtype=torch.bool).scatter_(1, experts, True).t().contiguous()
        outputs = torch.randn(copies, size.N, dtype=torch.bfloat16)
        plan = [size.E, list(splits), list(splits), rows.clone()]
        ranks.append([outputs, slots, experts, *plan, routed, _mapping(routed), shape, None])
    return ranks

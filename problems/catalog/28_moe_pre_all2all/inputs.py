import torch

from problems import routing


def _mask(size, draw, weights):
    """(E, K, M): K different experts per token, but some tokens name one twice, and some none."""
    ids = routing.preferences(draw, size.M, weights)[:, : size.K]
    twice = draw.mask(size.M, 0.06)
    ids[twice, size.K - 1] = ids[twice, 0]
    mask = torch.zeros(size.M, size.K, size.E).scatter_(2, ids.unsqueeze(-1), 1.0)
    mask[draw.mask(size.M, 0.06)] = 0.0
    return mask.permute(2, 1, 0).contiguous()


def build(size, world, draw):
    weights = routing.popularity(draw, size.E)
    masks = [_mask(size, draw, weights) for _ in range(world)]
    counts = torch.stack([(mask.sum(1) > 0).sum(1) for mask in masks])
    shape = [(size.M, size.N), (2, size.M // 2, size.N)][draw.integer(0, 2)]
    return [
        [draw.payload(shape), mask, size.E, sent, received, rows, None]
        for mask, (sent, received, rows) in zip(masks, routing.expert_parallel_plan(counts), strict=True)
    ]


def upstream(size, world, trial):
    copies = size.K * size.M
    splits = [copies // world] * world
    splits[-1] += copies % world
    cells = [copies // size.E + (cell < copies % size.E) for cell in range(size.E)]
    rows = torch.tensor(cells).view(world, size.E // world)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 28 + rank + 1000003 * trial)
        hidden = torch.randn(size.M, size.N, dtype=torch.bfloat16)
        ids = torch.stack([torch.randperm(size.E)[: size.K] for _ in range(size.M)])
        mask = torch.zeros(size.M, size.K, size.E).scatter_(2, ids.unsqueeze(-1), 1.0)
        mask = mask.permute(2, 1, 0).contiguous()
        ranks.append([hidden, mask, size.E, list(splits), list(splits), rows.clone(), None])
    return ranks

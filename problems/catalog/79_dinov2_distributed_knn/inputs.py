import torch


def _near(draw, centres, which, spread):
    """Unit vectors around the chosen centres, `spread` of their length away, in bf16."""
    noise = draw.normal((which.numel(), centres.shape[1]), torch.float32)
    noise = noise * (spread / centres.shape[1] ** 0.5)
    return torch.nn.functional.normalize(centres[which] + noise, dim=-1).to(torch.bfloat16)


def build(size, world, draw):
    clusters = max(4, size.n // 64)
    centres = torch.nn.functional.normalize(draw.normal((clusters, size.D), torch.float32), dim=-1)
    labels = draw.permutation(world * size.n) + draw.integer(0, 1000)
    k = size.k + draw.integer(-(size.k // 4), size.k // 4 + 1)
    ranks = []
    for rank in range(world):
        # The square of a uniform number: some clusters are full on one rank and rare on the next.
        uneven = draw.uniform((size.n,)).square() * clusters + rank * clusters / world
        train = _near(draw, centres, uneven.long() % clusters, draw.number(0.5, 1.0))
        queries = _near(draw, centres, draw.integers((size.q,), 0, clusters), 0.7)
        mine = labels[rank * size.n : (rank + 1) * size.n].view(1, -1)
        ranks.append([queries, train.T.contiguous(), mine.clone(), k, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 79 + rank + 1000003 * trial)
        queries = torch.randn(size.q, size.D, dtype=torch.bfloat16)
        queries = torch.nn.functional.normalize(queries, dim=-1)
        train = torch.randn(size.n, size.D, dtype=torch.bfloat16)
        train = torch.nn.functional.normalize(train, dim=-1)
        labels = (rank * size.n + torch.arange(size.n)) % 1000
        ranks.append([queries, train.T.contiguous(), labels.view(1, -1), size.k, None])
    return ranks

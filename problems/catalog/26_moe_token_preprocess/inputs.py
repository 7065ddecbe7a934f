import torch

from problems import routing


def build(size, world, draw):
    weights = routing.popularity(draw, size.E)
    ranks = []
    for _ in range(world):
        ids = routing.choices(draw, (size.M, size.K), weights)
        mask = torch.zeros(size.M, size.K, size.E).scatter_(2, ids.unsqueeze(-1), 1.0)
        mask[draw.mask((size.M, size.K), 0.1)] = 0.0
        ranks.append([mask.permute(2, 1, 0), size.E, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 26 + rank + 1000003 * trial)
        ids = torch.randint(0, size.E, (size.M, size.K))
        mask = torch.nn.functional.one_hot(ids, size.E).float()
        ranks.append([mask.permute(2, 1, 0), size.E, None])
    return ranks

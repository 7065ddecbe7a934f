import torch


def _rest(size, temporal):
    return [size.lt, size.lh, size.lh, 0.25, temporal, size.us, size.ut, 1, False, None]


def build(size, world, draw):
    shape = (1, size.C, size.Tz, size.Hz, size.Wz)
    return [[draw.normal(shape), *_rest(size, 1.0 / size.lt)] for _ in range(world)]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 78 + rank + 1000003 * trial)
        z = torch.randn(1, size.C, size.Tz, size.Hz, size.Wz, dtype=torch.bfloat16)
        ranks.append([z, *_rest(size, 0.0)])
    return ranks

import torch


def _scale(size, draw):
    """None (the default scale) or an explicit number near it."""
    return None if draw.integer(0, 2) else size.d**-0.5 * draw.number(0.5, 1.5)


def build(size, world, draw):
    shape = (size.B, size.T // world, size.h, size.d)
    causal, scale = draw.integer(0, 4) > 0, _scale(size, draw)
    sharp = draw.number(1.0, 4.0)  # peaky softmax: every key can matter, few do
    ranks = []
    for _ in range(world):
        q = draw.normal(shape, torch.bfloat16, std=sharp)
        ranks.append([q, draw.normal(shape), draw.normal(shape), scale, causal, None])
    return ranks


def upstream(size, world, trial):
    shape = (size.B, size.T // world, size.h, size.d)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 54 + rank + 1000003 * trial)
        qkv = [torch.randn(shape, dtype=torch.bfloat16) for _ in range(3)]
        ranks.append([*qkv, None, True, None])
    return ranks

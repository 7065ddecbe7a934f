import torch

# Scores deviate by about the square of this: weights that differ, without a single winner.
SCORE = 1.0


def build(size, world, draw):
    width = size.h * size.d
    causal = bool(draw.integer(0, 2))
    ranks = []
    for _ in range(world):
        hidden = draw.normal((size.B, size.S, size.H))
        w_qkv = draw.normal((3 * width, size.H), std=SCORE * size.H**-0.5)
        w_o = draw.normal((size.H, width), std=width**-0.5)
        ranks.append([hidden, w_qkv, w_o, None, size.h, causal])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 39 + rank + 1000003 * trial)
        hidden = torch.randn(size.B, size.S, size.H, dtype=torch.bfloat16)
        w_qkv = torch.randn(3 * size.h * size.d, size.H, dtype=torch.bfloat16)
        w_o = torch.randn(size.H, size.h * size.d, dtype=torch.bfloat16)
        ranks.append([hidden, w_qkv, w_o, None, size.h, False])
    return ranks

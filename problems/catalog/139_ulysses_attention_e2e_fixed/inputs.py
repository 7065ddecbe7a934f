import torch

# Scores deviate by about the square of this: weights that differ, without a single winner.
SCORE = 1.2


def build(size, world, draw):
    width = size.h * size.d
    causal = bool(draw.integer(0, 2))
    w_qkv = draw.normal((3 * width, size.H), std=SCORE * size.H**-0.5)
    w_o = draw.normal((size.H, width), std=width**-0.5)
    return [
        [draw.normal((size.B, size.S, size.H)), w_qkv.clone(), w_o.clone(), None, size.h, causal]
        for _ in range(world)
    ]


def upstream(size, world, trial):
    """Not published: public values by the rule of problem 39, with weights that all ranks share."""
    torch.manual_seed(42 + 1000 * 39 + 1000003 * trial)
    w_qkv = torch.randn(3 * size.h * size.d, size.H, dtype=torch.bfloat16) * size.H**-0.5
    w_o = torch.randn(size.H, size.h * size.d, dtype=torch.bfloat16) * size.H**-0.5
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 39 + rank + 1000003 * trial)
        hidden = torch.randn(size.B, size.S, size.H, dtype=torch.bfloat16)
        ranks.append([hidden, w_qkv.clone(), w_o.clone(), None, size.h, False])
    return ranks

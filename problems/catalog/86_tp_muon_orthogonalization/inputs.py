import torch


def build(size, world, draw):
    common = draw.normal((size.R, 1), torch.float32)
    kind = ("simple", "quintic")[draw.integer(0, 2)]
    # The quintic list has five entries, and steps must be a multiple of that.
    steps = size.s + (draw.integer(-2, 3) if kind == "simple" else 0)
    ranks = []
    for _ in range(world):
        scale = torch.exp2(draw.integers((1, size.c), -2, 3).float())
        lean = draw.normal((1, size.c), torch.float32, std=0.5)
        x = (draw.normal((size.R, size.c), torch.float32) + common * lean) * scale
        ranks.append([x.to(torch.bfloat16), steps, kind, 1, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 86 + rank + 1000003 * trial)
        x = torch.randn(size.R, size.c, dtype=torch.bfloat16) + 0.01 * rank
        ranks.append([x, size.s, "quintic", 1, None])
    return ranks

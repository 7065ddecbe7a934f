import torch

# Order of the dimensions (B, T, h, d) = (0, 1, 2, 3); the sequence and the heads are found in it.
LAYOUTS = [(0, 1, 2, 3), (1, 0, 2, 3), (0, 2, 1, 3), (1, 2, 0, 3), (2, 1, 0, 3)]


def build(size, world, draw):
    layout = LAYOUTS[draw.integer(0, len(LAYOUTS))]
    block = -(-size.T // world)
    length = draw.integer(max(1, (block - 1) * world + 1), size.T + 1)
    shape = [(size.B, length, size.h, size.d)[dim] for dim in layout]
    return [[draw.payload(shape), layout.index(1), layout.index(2), None] for _ in range(world)]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 37 + rank + 1000003 * trial)
        ranks.append([torch.randn(size.B, size.T, size.h, size.d, dtype=torch.bfloat16), 1, 2, None])
    return ranks

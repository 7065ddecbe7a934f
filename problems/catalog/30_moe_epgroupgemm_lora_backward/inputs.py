import torch


def build(size, world, draw):
    shapes = [(size.r, size.N), (size.r, size.N), (size.N, size.r)]
    scales = [2.0 ** draw.integer(-8, 9) for _ in shapes]
    return [
        [*(draw.values(shape) * scale for shape, scale in zip(shapes, scales, strict=True)), None]
        for _ in range(world)
    ]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 30 + rank + 1000003 * trial)
        shapes = [(size.r, size.N), (size.r, size.N), (size.N, size.r)]
        ranks.append([*(torch.randn(shape, dtype=torch.bfloat16) for shape in shapes), None])
    return ranks

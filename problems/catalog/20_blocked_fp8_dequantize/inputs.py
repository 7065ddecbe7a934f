import torch

BLOCK = 128


def build(size, world, draw):
    blocks = size.M * size.N // BLOCK
    ranks = []
    for _ in range(world):
        spread = torch.pow(2.0, draw.integers((world, blocks), -13, 10).float())
        scales = draw.values((world, blocks), torch.float32) * spread
        ranks.append([draw.values((world, size.M, size.N)), scales.to(torch.bfloat16), BLOCK])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 20 + rank + 1000003 * trial)
        y = torch.randn(world, size.M, size.N, dtype=torch.bfloat16)
        ranks.append([y, torch.randn(world, size.M * size.N // BLOCK, dtype=torch.bfloat16), BLOCK])
    return ranks

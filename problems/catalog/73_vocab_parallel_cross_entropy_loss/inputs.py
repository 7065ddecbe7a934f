import torch


def build(size, world, draw):
    shape = (size.B, size.T)
    shift = draw.integers((*shape, 1), -64, 65).float()
    target = draw.integers(shape, 0, size.V)
    ranks = []
    for _ in range(world):
        logits = draw.normal((*shape, size.V // world), torch.float32, std=3.0) + shift
        ranks.append([logits.to(torch.bfloat16), target.clone(), None])
    return ranks


def upstream(size, world, trial):
    count = size.B * size.T
    target = ((13 * torch.arange(count) + 7 + trial) % size.V).view(size.B, size.T)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 73 + rank + 1000003 * trial)
        logits = torch.randn(size.B, size.T, size.V // world, dtype=torch.bfloat16)
        ranks.append([logits, target.clone(), None])
    return ranks

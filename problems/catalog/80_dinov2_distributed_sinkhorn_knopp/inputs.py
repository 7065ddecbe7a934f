import torch


def build(size, world, draw):
    temperature, steps = draw.number(0.06, 0.08), size.it + draw.integer(-1, 2)
    ranks = []
    for _ in range(world):
        logits = draw.normal((size.B, size.K), torch.float32, std=0.25)
        logits += draw.normal((1, size.K), torch.float32, std=0.15)
        count = draw.integers((1,), 1, size.B + 1)
        ranks.append([logits, temperature, count, steps, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 80 + rank + 1000003 * trial)
        logits = torch.randn(size.B, size.K) * 0.01
        ranks.append([logits, 0.07, torch.tensor([size.B]), size.it, None])
    return ranks

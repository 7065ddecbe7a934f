import torch


def build(size, world, draw):
    scale = 2.0 ** draw.integer(-4, 5)
    rows = torch.pow(2.0, draw.integers((world * size.rows, 1), -1, 2).float()) * scale
    # The mean over the ranks has a mean square of about scale**2 / world.
    eps = draw.number(0.5, 2.0) * scale**2 / world
    gamma = draw.normal(size.hidden)
    ranks = []
    for _ in range(world):
        x = draw.normal((world * size.rows, size.hidden), torch.float32) * rows
        ranks.append([x.to(torch.bfloat16).view(-1), gamma.clone(), eps])
    return ranks


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 45 + 1000003 * trial)
    gamma = torch.randn(size.hidden, dtype=torch.bfloat16)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 45 + rank + 1000003 * trial)
        x = torch.randn(world * size.rows * size.hidden, dtype=torch.bfloat16)
        ranks.append([x, gamma.clone(), 1e-5])
    return ranks

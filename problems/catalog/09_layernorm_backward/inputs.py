import torch


def build(size, world, draw):
    ranks = []
    for _ in range(world):
        X_hat = draw.normal((size.M, size.N))
        ranks.append([X_hat, draw.normal((size.M, size.N), std=2.0 ** draw.integer(-1, 2))])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 9 + rank + 1000003 * trial)
        X = torch.randn(size.M, size.N, dtype=torch.bfloat16)
        X_hat = X / (X.norm(dim=-1, keepdim=True) + 1e-5)
        ranks.append([X_hat, torch.randn(size.M, size.N, dtype=torch.bfloat16)])
    return ranks

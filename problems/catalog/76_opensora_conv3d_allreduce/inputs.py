import torch


def build(size, world, draw):
    std = (world * size.Ci * size.k**3) ** -0.5
    bias = draw.values((size.Co,)) if draw.integer(0, 4) else None
    ranks = []
    for _ in range(world):
        x = draw.normal((size.Bt, size.Ci, size.T, size.Y, size.X))
        weight = draw.normal((size.Co, size.Ci, size.k, size.k, size.k), std=std)
        ranks.append([x, weight, None if bias is None else bias.clone(), 1, 0, 1, 1, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 76 + rank + 1000003 * trial)
        x = torch.randn(size.Bt, size.Ci, size.T, size.Y, size.X, dtype=torch.bfloat16)
        weight = torch.randn(size.Co, size.Ci, size.k, size.k, size.k, dtype=torch.bfloat16)
        bias = torch.linspace(-0.1, 0.1, size.Co, dtype=torch.bfloat16)
        ranks.append([x, weight, bias, 1, 0, 1, 1, None])
    return ranks

import torch


def build(size, world, draw):
    group_dim = 2 if (size.C // 2) % world == 0 else 1
    groups = size.C // group_dim
    decay = torch.exp2(draw.uniform((groups, 1), -7.0, -1.0)) * 64.0 / size.F
    filters = draw.normal((groups, size.F), torch.float32) * torch.exp(-decay * torch.arange(size.F))
    filters = (filters / filters.norm(dim=-1, keepdim=True)).to(torch.bfloat16)
    bias = draw.values((size.C,))
    zigzag = draw.integer(0, 4) > 0
    ranks = []
    for _ in range(world):
        sequences = [draw.normal((size.Bt, size.C, size.l)) for _ in range(3)]
        ranks.append([*sequences, filters.clone(), bias.clone(), groups, group_dim, None, zigzag])
    return ranks


def upstream(size, world, trial):
    filters = torch.arange(size.C * size.F, dtype=torch.bfloat16).view(size.C, size.F) / size.F
    bias = torch.arange(size.C, dtype=torch.bfloat16) / size.C
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 72 + rank + 1000003 * trial)
        sequences = [torch.randn(size.Bt, size.C, size.l, dtype=torch.bfloat16) for _ in range(3)]
        ranks.append([*sequences, filters.clone(), bias.clone(), size.C, 1, None, True])
    return ranks

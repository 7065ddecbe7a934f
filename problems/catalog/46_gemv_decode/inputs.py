import torch


def build(size, world, draw):
    hidden = draw.normal((size.T, size.H))
    return [
        [hidden.clone(), draw.normal((size.L, size.H)), draw.normal(size.L, std=20.0)] for _ in range(world)
    ]


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 46 + 1000003 * trial)
    hidden = torch.randn(size.T, size.H, dtype=torch.bfloat16)
    weight = torch.randn(world * size.L, size.H, dtype=torch.bfloat16).chunk(world)
    bias = torch.randn(world * size.L, dtype=torch.bfloat16).chunk(world)
    return [[hidden.clone(), weight[rank].clone(), bias[rank].clone()] for rank in range(world)]

import torch


def build(size, world, draw):
    norm = ("ortho", "backward", "forward")[draw.integer(0, 3)]
    shape = (size.B, size.H, size.Wd // world)
    ranks = []
    for _ in range(world):
        field = draw.normal(shape, torch.float32, std=draw.number(0.5, 2.0))
        ranks.append([field, (size.H, size.Wd), (1, 2), norm, None])
    return ranks


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 59 + 1000003 * trial)
    field = torch.randn(size.B, size.H, size.Wd)
    return [
        [part.contiguous(), (size.H, size.Wd), (1, 2), "ortho", None] for part in field.chunk(world, dim=2)
    ]

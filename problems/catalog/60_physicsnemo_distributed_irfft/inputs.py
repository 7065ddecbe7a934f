import torch


def build(size, world, draw):
    norm = ("ortho", "backward", "forward")[draw.integer(0, 3)]
    shape = (size.B, size.C, size.H // world, size.Wd // 2 + 1, 2)
    ranks = []
    for _ in range(world):
        # A general half spectrum: columns 0 and Wd/2 are not those of a real field.
        spectrum = torch.view_as_complex(draw.normal(shape, torch.float32, std=draw.number(0.5, 2.0)))
        ranks.append([spectrum, (size.H, size.Wd), (-2, -1), norm, None])
    return ranks


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 60 + 1000003 * trial)
    spectrum = torch.fft.rfft2(torch.randn(size.B, size.C, size.H, size.Wd), norm="ortho")
    return [
        [part.contiguous(), (size.H, size.Wd), (-2, -1), "ortho", None] for part in spectrum.chunk(world, -2)
    ]

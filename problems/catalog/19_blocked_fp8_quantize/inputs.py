import torch

BLOCK = 128


def _codes(quotient):
    return quotient.clamp(-448.0, 448.0).to(torch.float8_e4m3fn).view(torch.uint8)


def _off_ties(x):
    """Flip the lowest bit of bf16 elements whose code hangs on the last bits of the quotient.

    One bit moves the quotient by at least 2^-8, far from this tie and from the next one; a block's
    largest element is never near a tie, so the scales stay.
    """
    wide = x.float()
    scale = wide.abs().amax(-1, keepdim=True) / 448.0
    quotient = wide / scale.clamp_min(1e-30)
    close = _codes(quotient * (1 + 2e-5)) != _codes(quotient * (1 - 2e-5))
    return (x.view(torch.int16) ^ close.to(torch.int16)).view(torch.bfloat16)


def _blocks(count, draw):
    x = draw.normal((count, BLOCK), torch.float32)
    outlier = draw.mask(count, 0.1)
    x[outlier, draw.integer(0, BLOCK)] = draw.number(300.0, 3000.0)
    x *= torch.pow(2.0, draw.integers((count, 1), -20, 21).float())
    x[draw.mask(count, 0.05)] = 0.0
    return _off_ties(x.to(torch.bfloat16))


def build(size, world, draw):
    count = size.M * size.N // BLOCK
    return [[_blocks(count, draw).view(size.M, size.N), BLOCK] for _ in range(world)]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 19 + rank + 1000003 * trial)
        ranks.append([torch.randn(size.M, size.N, dtype=torch.bfloat16), BLOCK])
    return ranks

import torch

# An outlier's 8-bit mantissa is one of these primes, and all other elements of its block are less than a quarter
# of it: then 127 * x / max is never half an integer, and no rounding decides which step an element falls into.
MANTISSAS = [131, 137, 149, 151, 163, 173, 181, 193, 211, 223, 229, 241, 251]


def _gradient(size, block, scales, zero, draw):
    count = len(scales)
    x = draw.values((count, block))
    mantissa = torch.tensor(MANTISSAS)[draw.integers(count, 0, len(MANTISSAS))]
    outlier = (mantissa / 16.0 * (1 - 2 * draw.integers(count, 0, 2))).to(torch.bfloat16)
    # The last block may be cut short by n: its outlier is its first element.
    place = draw.integers(count, 0, block)
    place[-1] = 0
    x[torch.arange(count), place] = outlier
    own = torch.pow(2.0, draw.integers(count, -1, 2).float())
    x *= (scales * own * ~zero).to(torch.bfloat16).unsqueeze(1)
    return x.view(-1)[: size.n].clone()


def build(size, world, draw):
    block = [size.b, size.b // 2, 3 * size.b // 4][draw.integer(0, 3)]
    count = -(-size.n // block)
    scales = torch.pow(2.0, draw.integers(count, -2, 3).float()) * 2.0 ** draw.integer(-8, 3)
    nowhere = draw.mask(count, 0.02)
    shape = (size.n,) if draw.integer(0, 2) else (2, size.n // 2)
    ranks = []
    for _ in range(world):
        zero = nowhere | draw.mask(count, 0.05)
        ranks.append([_gradient(size, block, scales, zero, draw).view(shape), block])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 44 + rank + 1000003 * trial)
        ranks.append([torch.randn(size.n, dtype=torch.bfloat16), size.b])
    return ranks

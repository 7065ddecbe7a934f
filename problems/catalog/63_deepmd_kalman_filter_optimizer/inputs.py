import torch


def _lengths(size, draw):
    """Block lengths of one rank: pairs of a longer and a shorter one, so the sum is the same on all ranks."""
    lengths = []
    for _ in range(size.blocks // 2):
        shift = draw.integer(-(size.block // 8), size.block // 8 + 1)
        lengths += [size.block + shift, size.block - shift]
    return lengths


def _block(draw, length):
    """(H, P): P positive definite, spread spectrum, and most uncertain along H, so that the step is large."""
    H = draw.normal((length, 1), torch.float64, std=length**-0.5)
    factors = draw.normal((length, 8), torch.float64, std=0.5)
    factors[:, :1] = H * draw.number(3.0, 10.0)
    P = factors @ factors.T
    P = (P + P.T) / 2
    P.diagonal().add_(2.0 ** draw.uniform((length,), -4.0, 2.0, torch.float64))
    return H, P


def build(size, world, draw):
    decay, nue = draw.number(0.9, 0.999), draw.number(0.99, 0.9995)
    ranks = []
    for _ in range(world):
        blocks = [_block(draw, length) for length in _lengths(size, draw)]
        weights = [draw.normal((len(H), 1), torch.float64) for H, _ in blocks]
        error = draw.uniform((), 1.0, 10.0, torch.float64) * (1 if draw.integer(0, 2) else -1)
        ranks.append([[H for H, _ in blocks], error, weights, [P for _, P in blocks], decay, nue])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 63 + rank + 1000003 * trial)
        H, weights = [], []
        for _ in range(size.blocks):
            H.append(0.01 * torch.randn(size.block, 1, dtype=torch.float64))
            weights.append(torch.randn(size.block, 1, dtype=torch.float64))
        error = torch.randn((), dtype=torch.float64)
        P = [torch.eye(size.block, dtype=torch.float64) for _ in range(size.blocks)]
        ranks.append([H, error, weights, P, 0.98, 0.9987])
    return ranks

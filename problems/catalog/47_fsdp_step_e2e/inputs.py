import math

import torch


def _shapes(size):
    return ((size.hidden, size.d_in), (size.hidden,), (size.d_out, size.hidden), (size.d_out,))


def _parameters(size, draw):
    """Flat parameters on a grid that keeps every pre-activation away from zero.

    X, W1 and b1 are multiples of powers of two, b1 an odd one of half the product's grid, so that no
    ReLU decision depends on how a solution rounds.
    """
    grid = 2.0 ** -math.ceil(math.log2(2 * math.sqrt(size.d_in)))
    w1 = draw.integers((size.hidden, size.d_in), -3, 4, torch.float32) * grid
    b1 = (2 * draw.integers((size.hidden,), -100, 100, torch.float32) + 1) * (grid / 8)
    w2 = draw.normal((size.d_out, size.hidden), torch.float32, std=size.hidden**-0.5)
    b2 = draw.normal((size.d_out,), torch.float32, std=0.5)
    return torch.cat([part.reshape(-1) for part in (w1, b1, w2, b2)]).to(torch.bfloat16)


def build(size, world, draw):
    rows = size.n_total // world
    flat = _parameters(size, draw)
    part = flat.numel() // world
    scale = 2.8 / (math.sqrt(size.n_total) * size.d_out)  # of a typical averaged gradient
    # Every scalar is as large as it must be for the answer to depend on it: eps against the root of v, the decay
    # by what one step takes off a parameter.
    lr = 0.05 * 6.0 ** draw.number(0.0, 1.0)
    decay = draw.number(0.05, 0.75) / lr
    betas = [draw.number(0.7, 0.9), draw.number(0.5, 0.9)]
    eps = scale * 10.0 ** draw.number(-1.5, 0.5)
    rest = [lr, *betas, eps, decay, 2 ** draw.integer(0, 4)]
    ranks = []
    for rank in range(world):
        x = (draw.integers((rows, size.d_in), -8, 9, torch.float32) / 4).to(torch.bfloat16)
        y = draw.normal((rows, size.d_out), torch.bfloat16)
        shard = flat[rank * part : (rank + 1) * part].clone()
        m = draw.normal((part,), torch.float32, std=scale).to(torch.bfloat16)
        v = (draw.uniform((part,), 0.5, 2.0) * scale**2).to(torch.bfloat16)
        ranks.append([x, y, shard, _shapes(size), m, v, *rest])
    return ranks


def upstream(size, world, trial):
    rows = size.n_total // world
    shapes = _shapes(size)
    count = sum(math.prod(shape) for shape in shapes)
    part = count // world
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 47 + 1000003 * trial)
        x = torch.randn(size.n_total, size.d_in, dtype=torch.bfloat16)
        y = torch.randn(size.n_total, size.d_out, dtype=torch.bfloat16)
        # Published quirk: only rank 0 draws parameters, everybody else slices zeros.
        flat = torch.zeros(count, dtype=torch.bfloat16)
        if rank == 0:
            flat = torch.cat([torch.randn(shape, dtype=torch.bfloat16).reshape(-1) for shape in shapes])
        mine = slice(rank * rows, (rank + 1) * rows)
        shard = flat[rank * part : (rank + 1) * part].clone()
        state = [torch.zeros_like(shard), torch.zeros_like(shard)]
        rest = [1e-3, 0.9, 0.999, 1e-8, 0.01, 1 + trial % 7]
        ranks.append([x[mine].clone(), y[mine].clone(), shard, shapes, *state, *rest])
    return ranks

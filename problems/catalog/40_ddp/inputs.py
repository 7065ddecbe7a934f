import torch

from problems import trainstep


def build(size, world, draw):
    columns, batches = trainstep.batches(draw, size.n, size.din, size.dout, world)
    scale = trainstep.gradient_scale(size.n, size.dout, world)
    adam = trainstep.adam(draw, scale)
    ranks = []
    for x, y in batches:
        params = trainstep.parameters(draw, size.din, size.hid, size.dout, columns)
        state = [trainstep.moments(draw, p.numel(), scale) for p in params]
        first = [m.view(p.shape) for (m, _), p in zip(state, params, strict=True)]
        second = [v.view(p.shape) for (_, v), p in zip(state, params, strict=True)]
        ranks.append([x, y, *params, *first, *second, adam.lr, adam.beta1, adam.beta2, adam.eps, adam.step])
    return ranks


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 40 + 1000003 * trial)
    x = torch.randn(size.n * world, size.din, dtype=torch.bfloat16)
    y = torch.randn(size.n * world, size.dout, dtype=torch.bfloat16)
    shapes = trainstep.mlp_shapes(size.din, size.hid, size.dout)
    params = [torch.randn(shape, dtype=torch.bfloat16) for shape in shapes]
    ranks = []
    for rank in range(world):
        rows = slice(rank * size.n, (rank + 1) * size.n)
        own = [p.clone() if rank == 0 else torch.zeros_like(p) for p in params]
        state = [torch.zeros_like(p) for p in [*params, *params]]
        ranks.append([x[rows].clone(), y[rows].clone(), *own, *state, 1e-3, 0.9, 0.999, 1e-8, 1 + trial % 7])
    return ranks

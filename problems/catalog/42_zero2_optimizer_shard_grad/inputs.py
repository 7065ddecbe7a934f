import torch

from problems import trainstep


def build(size, world, draw):
    columns, batches = trainstep.batches(draw, size.n, size.din, size.dout, world)
    scale = trainstep.gradient_scale(size.n, size.dout, world)
    adam = trainstep.adam(draw, scale)
    count = trainstep.mlp_count(size.din, size.hid, size.dout) // world
    ranks = []
    for x, y in batches:
        params = trainstep.parameters(draw, size.din, size.hid, size.dout, columns)
        shards = trainstep.moments(draw, count, scale)
        ranks.append([x, y, *params, *shards, adam.lr, adam.beta1, adam.beta2, adam.eps, adam.step])
    return ranks


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 42 + 1000003 * trial)
    x = torch.randn(size.n * world, size.din, dtype=torch.bfloat16)
    y = torch.randn(size.n * world, size.dout, dtype=torch.bfloat16)
    shapes = trainstep.mlp_shapes(size.din, size.hid, size.dout)
    params = [torch.randn(shape, dtype=torch.bfloat16) for shape in shapes]
    count = sum(p.numel() for p in params) // world
    ranks = []
    for rank in range(world):
        rows = slice(rank * size.n, (rank + 1) * size.n)
        own = [p.clone() if rank == 0 else torch.zeros_like(p) for p in params]
        shards = [torch.zeros(count, dtype=torch.bfloat16) for _ in range(2)]
        ranks.append([x[rows].clone(), y[rows].clone(), *own, *shards, 1e-3, 0.9, 0.999, 1e-8, 1 + trial % 7])
    return ranks

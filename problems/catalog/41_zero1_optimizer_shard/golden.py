import torch

from problems import trainstep


def golden(ranks, size, world, dtype):
    """One step over the whole flat state: rank 0's parameters, the ranks' moment shards joined."""
    params = ranks[0][2:6]
    grads = [trainstep.flat_gradient(args[0], args[1], params, dtype) for args in ranks]
    p, m, v = trainstep.adam_step(
        torch.cat([part.reshape(-1) for part in params]),
        torch.stack(grads).mean(0),
        torch.cat([args[6] for args in ranks]),
        torch.cat([args[7] for args in ranks]),
        ranks[0][8:],
    )
    shards = zip(m.chunk(world), v.chunk(world), strict=True)
    return [(*trainstep.split(p, params), *shard) for shard in shards]

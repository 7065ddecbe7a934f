import torch

from problems import trainstep


def golden(ranks, size, world, dtype):
    """Every rank ends with rank 0's state after a step with the mean of the ranks' gradients."""
    params, first, second = ranks[0][2:6], ranks[0][6:10], ranks[0][10:14]
    grads = [trainstep.flat_gradient(args[0], args[1], params, dtype) for args in ranks]
    mean = torch.stack(grads).mean(0)
    steps = [
        trainstep.adam_step(p, g, m, v, ranks[0][14:])
        for p, g, m, v in zip(params, trainstep.split(mean, params), first, second, strict=True)
    ]
    answer = tuple(step[kind] for kind in range(3) for step in steps)
    return [answer for _ in ranks]

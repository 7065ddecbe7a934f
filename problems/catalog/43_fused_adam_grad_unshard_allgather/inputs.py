import torch

from problems import trainstep


def build(size, world, draw):
    scale = 2.0 ** draw.integer(-10, 3)
    adam = trainstep.adam(draw, scale)
    ranks = []
    for _ in range(world):
        grad = draw.normal(size.P, std=scale)
        master = draw.normal(size.P, std=0.1)
        state = trainstep.moments(draw, size.P, scale)
        ranks.append([grad, master, *state, 4 * adam.lr, adam.beta1, adam.beta2, adam.eps, adam.step])
    return ranks


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 43 + 1000003 * trial)
    grad = torch.randn(world * size.P, dtype=torch.bfloat16).chunk(world)
    master = torch.randn(world * size.P, dtype=torch.bfloat16).chunk(world)
    ranks = []
    for rank in range(world):
        state = [torch.zeros(size.P, dtype=torch.bfloat16) for _ in range(2)]
        own = [grad[rank].clone(), master[rank].clone()]
        ranks.append([*own, *state, 1e-3, 0.9, 0.999, 1e-8, 1 + trial % 7])
    return ranks

import torch

from problems.leaves import Group


def _experts(world):
    """ep_size, and whether expert groups exist (else: ep_group None, ep_fsdp_group WORLD)."""
    ep_size = max(1, world // 2)
    return ep_size, ep_size > 1 and world % ep_size == 0


def groups(world):
    ep_size, split = _experts(world)
    if not split:
        return []
    blocks = [tuple(range(first, first + ep_size)) for first in range(0, world, ep_size)]
    return blocks + [tuple(range(index, world, ep_size)) for index in range(ep_size)]


def _groups_of(rank, world):
    """fsdp_group, ep_fsdp_group, ep_group as the builder passes them."""
    ep_size, split = _experts(world)
    if not split:
        return [Group(), Group(), None]
    block = rank // ep_size * ep_size
    strided = tuple(range(rank % ep_size, world, ep_size))
    return [Group(), Group(strided), Group(tuple(range(block, block + ep_size)))]


def _grads(size, parts, power, draw):
    grads = []
    for rows in draw.splits(size.M, parts, at_least=1):
        grad = draw.values((rows, size.N), torch.float32)
        # One element holds a few percent of the sum of powers: a norm estimated from a sample fails.
        share = draw.number(0.02, 0.1) * grad.abs().pow(power).sum()
        grad[draw.integer(0, rows), draw.integer(0, size.N)] = share ** (1 / power)
        grads.append(grad.mul_(2.0 ** draw.integer(-3, 4)).to(torch.bfloat16))
    return grads


def build(size, world, draw):
    power = (1.0, 2.0, 3.0)[draw.integer(0, 3)]
    ep_size, _ = _experts(world)
    # List lengths are a property of the model, so they are the same on every rank.
    parts = (draw.integer(1, 4), draw.integer(1, 4))
    lists = [[_grads(size, count, power, draw) for count in parts] for _ in range(world)]
    total = 0.0
    for dense, expert in lists:
        total += sum(float(g.double().abs().pow(power).sum()) for g in dense)
        total += sum(float((g.double() / ep_size).abs().pow(power).sum()) for g in expert)
    # Three of four calls clip, by factors that differ; never so close to 1 that rounding decides.
    limit = total ** (1 / power) * (draw.number(0.05, 0.9) if draw.integer(0, 4) else draw.number(1.1, 2.0))
    return [
        [dense, expert, limit, power, ep_size, *_groups_of(rank, world)]
        for rank, (dense, expert) in enumerate(lists)
    ]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 22 + rank + 1000003 * trial)
        dense, expert = (torch.randn(size.M, size.N, dtype=torch.bfloat16) for _ in range(2))
        ep_size, _ = _experts(world)
        ranks.append([[dense], [expert], 1.0, 2.0, ep_size, *_groups_of(rank, world)])
    return ranks

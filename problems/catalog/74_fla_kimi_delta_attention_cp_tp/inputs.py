import torch

from problems.leaves import Group


def _layout(world):
    """(tp groups, cp groups) where there are enough ranks for both."""
    if world < 4 or world % 2:
        return [], []
    pairs = [(first, first + 1) for first in range(0, world, 2)]
    return pairs, [tuple(range(0, world, 2)), tuple(range(1, world, 2))]


def groups(world):
    pairs, rows = _layout(world)
    return pairs + rows


def _groups_of(rank, world):
    pairs, rows = _layout(world)
    if not pairs:
        return Group(), None
    return Group(rows[rank % 2]), Group(pairs[rank // 2])


def build(size, world, draw):
    tokens = (size.Bt, size.s, size.H)
    a_log = draw.uniform((size.H,), -0.3, 0.3, torch.bfloat16)
    dt_bias = draw.uniform((size.H * size.K,), -0.5, 0.5, torch.bfloat16)
    shift = draw.uniform((1, 1, size.H, 1), 4.0, 7.0)
    ranks = []
    for rank in range(world):
        q, k = draw.normal((*tokens, size.K)), draw.normal((*tokens, size.K))
        v = draw.normal((*tokens, size.V))
        g = (draw.normal((*tokens, size.K), torch.float32) - shift).to(torch.bfloat16)
        beta = draw.normal(tokens)
        ranks.append([q, k, v, g, beta, a_log.clone(), dt_bias.clone(), *_groups_of(rank, world)])
    return ranks


def upstream(size, world, trial):
    tokens = (size.Bt, size.s, size.H)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 74 + rank + 1000003 * trial)
        q, k = (torch.randn(*tokens, size.K, dtype=torch.bfloat16) for _ in range(2))
        v = torch.randn(*tokens, size.V, dtype=torch.bfloat16)
        g = torch.randn(*tokens, size.K, dtype=torch.bfloat16)
        beta = torch.randn(*tokens, dtype=torch.bfloat16)
        a_log = torch.linspace(-0.1, 0.1, size.H, dtype=torch.bfloat16)
        dt_bias = torch.linspace(-0.1, 0.1, size.H * size.K, dtype=torch.bfloat16)
        ranks.append([q, k, v, g, beta, a_log, dt_bias, *_groups_of(rank, world)])
    return ranks

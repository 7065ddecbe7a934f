import math

import torch

from problems.leaves import Group


def _groups(world):
    """(data-parallel, context-parallel) groups; rank = dp_index * cp_size + cp_index."""
    dp_size = min(2, world)
    cp_size = world // dp_size
    dp = [tuple(d * cp_size + c for d in range(dp_size)) for c in range(cp_size)]
    cp = [tuple(d * cp_size + c for c in range(cp_size)) for d in range(dp_size)]
    return dp, cp


def groups(world):
    dp, cp = _groups(world)
    return dp + cp


def _lse(size, draw, start, length, spread, causal):
    """About the log-sum-exp of visible scores of the given spread; never that of the actual scores."""
    seen = torch.arange(start + 1, start + length + 1).float() if causal else torch.full((length,), size.T)
    noise = draw.uniform((size.B, size.h, length), -0.5, 0.5)
    return seen.log() + spread**2 / 2 + noise


def build(size, world, draw):
    dp, cp = _groups(world)
    length = size.T // len(dp)
    shape = (size.B, length, size.h, size.d)
    causal = draw.integer(0, 2) > 0
    scale = None if draw.integer(0, 2) else size.d**-0.5 * draw.number(0.5, 1.5)
    spread = (scale or size.d**-0.5) * math.sqrt(size.d)
    ranks = []
    for rank in range(world):
        d, c = divmod(rank, len(dp))
        dout, q, k, v = (draw.normal(shape) for _ in range(4))
        out = draw.normal(shape, torch.bfloat16, std=0.5)
        lse = _lse(size, draw, c * length, length, spread, causal)
        ranks.append([dout, q, k, v, out, lse, scale, causal, Group(cp[d]), Group(dp[c])])
    return ranks


def upstream(size, world, trial):
    dp, cp = _groups(world)
    shape = (size.B, size.T // len(dp), size.h, size.d)
    ranks = []
    for rank in range(world):
        d, c = divmod(rank, len(dp))
        torch.manual_seed(42 + 1000 * 58 + 100 * d + c + 1000003 * trial)  # 58 is published
        q, k, v, dout = (torch.randn(shape, dtype=torch.bfloat16) for _ in range(4))
        # Published quirk: out and lse belong to the local chunk alone, without a mask.
        q32, k32, v32 = (part.float().transpose(1, 2) for part in (q, k, v))
        scores = q32 @ k32.transpose(2, 3) * size.d**-0.5
        out = (torch.softmax(scores, -1) @ v32).transpose(1, 2).to(torch.bfloat16).contiguous()
        lse = torch.logsumexp(scores, -1)
        ranks.append([dout, q, k, v, out, lse, None, False, Group(cp[d]), Group(dp[c])])
    return ranks

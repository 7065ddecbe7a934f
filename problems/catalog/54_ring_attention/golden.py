import math

import torch


def golden(ranks, size, world, dtype):
    q, k, v = (torch.cat([args[i] for args in ranks], dim=1).to(dtype) for i in range(3))
    scale, causal = ranks[0][3:5]
    out = _attention(q, k, v, size.d**-0.5 if scale is None else scale, causal)
    return list(out.chunk(world, dim=1))


def _attention(q, k, v, scale, causal):
    """Softmax attention over whole sequences (B, T, h, d)."""
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * scale
    if causal:
        ahead = torch.arange(k.shape[1]) > torch.arange(q.shape[1])[:, None]
        scores = scores.masked_fill(ahead, -math.inf)
    return torch.einsum("bhij,bjhd->bihd", torch.softmax(scores, dim=-1), v)

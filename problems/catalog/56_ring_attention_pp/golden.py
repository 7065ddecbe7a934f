import math

import torch


def golden(ranks, size, world, dtype):
    stages = min(2, world)
    cp_size = world // stages
    heads, scale, causal = ranks[0][3:6]
    scale = size.d**-0.5 if scale is None else scale
    x = torch.cat([args[0] for args in ranks[:cp_size]], dim=1).to(dtype)
    answers = []
    for args in ranks[::cp_size]:
        w_qkv = args[1].to(dtype).view(3, heads, size.d, -1)
        q, k, v = (torch.einsum("btc,hdc->bthd", x, w) for w in w_qkv)
        x = _attention(q, k, v, scale, causal).flatten(2) @ args[2].to(dtype).T
        answers += x.chunk(cp_size, dim=1)
    return answers


def _attention(q, k, v, scale, causal):
    """Softmax attention over whole sequences (B, T, h, d)."""
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * scale
    if causal:
        ahead = torch.arange(k.shape[1]) > torch.arange(q.shape[1])[:, None]
        scores = scores.masked_fill(ahead, -math.inf)
    return torch.einsum("bhij,bjhd->bihd", torch.softmax(scores, dim=-1), v)

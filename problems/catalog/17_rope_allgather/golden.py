import torch


def golden(ranks, size, world, dtype):
    """Each half written out, over the whole sequence at once."""
    q, k, cos, sin = (torch.cat([args[i] for args in ranks], dim=1).to(dtype) for i in range(4))
    c1, c2 = cos.unsqueeze(2).chunk(2, dim=-1)
    s1, s2 = sin.unsqueeze(2).chunk(2, dim=-1)
    outputs = []
    for x in (q, k):
        x1, x2 = x.chunk(2, dim=-1)
        outputs.append(torch.cat([x1 * c1 - x2 * s1, x2 * c2 + x1 * s2], dim=-1))
    return [tuple(outputs) for _ in ranks]

import torch


def golden(ranks, size, world, dtype):
    dp_size = min(2, world)
    cp_size = world // dp_size
    replicas = [_gradients(ranks[start : start + cp_size], size, dtype) for start in range(0, world, cp_size)]
    means = [torch.stack(parts).mean(0).chunk(cp_size, dim=1) for parts in zip(*replicas, strict=True)]
    return [tuple(chunks[rank % cp_size] for chunks in means) for rank in range(world)]


def _gradients(ring, size, dtype):
    """dq, dk, dv (B, T, h, d) of one whole sequence, by the formulas with the given out and lse."""
    dout, q, k, v, out = (torch.cat([args[i] for args in ring], dim=1).to(dtype) for i in range(5))
    lse = torch.cat([args[5] for args in ring], dim=2).to(dtype)
    scale, causal = ring[0][6:8]
    scale = size.d**-0.5 if scale is None else scale
    p = torch.exp(torch.einsum("bihd,bjhd->bhij", q, k) * scale - lse[..., None])
    if causal:
        p = torch.tril(p)
    inner = torch.einsum("bihd,bjhd->bhij", dout, v) - torch.einsum("bihd,bihd->bhi", dout, out)[..., None]
    ds = p * inner * scale
    return (
        torch.einsum("bhij,bjhd->bihd", ds, k),
        torch.einsum("bhij,bihd->bjhd", ds, q),
        torch.einsum("bhij,bihd->bjhd", p, dout),
    )

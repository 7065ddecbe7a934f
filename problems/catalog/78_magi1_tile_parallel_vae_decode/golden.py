import itertools

import torch


def _upsampler(n, up, z, dtype):
    """Linear interpolation of n samples to n*up as a matrix."""
    at = ((torch.arange(n * up, device=z.device, dtype=dtype) + 0.5) / up - 0.5).clamp(min=0)
    distance = (at.unsqueeze(1) - torch.arange(n, device=z.device, dtype=dtype)).abs()
    matrix = (1 - distance).clamp(min=0)
    matrix[:, -1] += 1 - matrix.sum(1)  # beyond the last sample its value stays
    return matrix


def _decode(z, ups, dtype):
    z = z[:, [c % z.shape[1] for c in range(3)]].to(dtype)
    for dim, up in enumerate(ups, start=2):
        z = torch.tensordot(z, _upsampler(z.shape[dim], up, z, dtype), ([dim], [1])).movedim(-1, dim)
    return z


def _fade(before, tile, dim, extent):
    extent = min(before.shape[dim], tile.shape[dim], extent)
    if extent == 0:
        return tile
    shape = [extent if d == dim else 1 for d in range(5)]
    share = (torch.arange(extent, device=tile.device, dtype=tile.dtype) / extent).view(shape)
    old = before.narrow(dim, before.shape[dim] - extent, extent)
    new = old + (tile.narrow(dim, 0, extent) - old) * share
    return torch.cat([new, tile.narrow(dim, extent, tile.shape[dim] - extent)], dim)


def golden(ranks, size, world, dtype):
    z, _, _, _, spatial, temporal, *_ = ranks[0]
    tile, ups = (size.lt, size.lh, size.lh), (size.ut, size.us, size.us)
    overlap = (temporal, spatial, spatial)
    strides = [int(n * (1 - o)) for n, o in zip(tile, overlap, strict=True)]
    grid = list(itertools.product(*(range(-(-n // s)) for n, s in zip(z.shape[2:], strides, strict=True))))
    cuts = {at: [slice(i * s, i * s + n) for i, s, n in zip(at, strides, tile, strict=True)] for at in grid}
    areas = {at: z[0, 0][tuple(cuts[at])].numel() for at in grid}
    order = sorted(grid, key=areas.__getitem__, reverse=True)
    decoded = {
        at: _decode(ranks[place % world][0][(slice(None), slice(None), *cuts[at])], ups, dtype)
        for place, at in enumerate(order)
    }
    video = torch.empty((1, 3, *(n * up for n, up in zip(z.shape[2:], ups, strict=True))), dtype=dtype)
    blend = [int(n * up * o) for n, up, o in zip(tile, ups, overlap, strict=True)]
    keep = [n * up - b for n, up, b in zip(tile, ups, blend, strict=True)]
    for at, part in decoded.items():
        for axis in range(3):
            if at[axis]:
                before = decoded[tuple(n - (a == axis) for a, n in enumerate(at))]
                part = _fade(before, part, axis + 2, blend[axis])
        part = part[:, :, : keep[0], : keep[1], : keep[2]]
        spots = [slice(i * n, i * n + m) for i, n, m in zip(at, keep, part.shape[2:], strict=True)]
        video[(slice(None), slice(None), *spots)] = part
    return [video.to(z.device) for _ in ranks]

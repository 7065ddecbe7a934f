import torch


def _cut(length, parts):
    """Bounds of the chunks of a distributed axis."""
    step = -(-length // parts)
    if step * (parts - 1) >= length:
        step = length // parts
    return [*(step * part for part in range(parts)), length]


def _contract(y, x, psi, scale, nlon_out):
    """Adds to y (K, T, P, B, C) what one psi makes of x (B, C, lat, lon), entry by entry."""
    nlon = x.shape[3]
    longitudes = torch.arange(nlon_out, device=x.device) * scale
    moved = x.permute(2, 3, 0, 1)
    for (k, t, place), value in zip(
        psi["indices"].T.tolist(), psi["values"].to(x.dtype).unbind(), strict=True
    ):
        lat, lon = divmod(place, nlon)
        y[k, t] += value * moved[lat, (lon + longitudes) % nlon]


def golden(ranks, size, world, dtype):
    """The whole sphere at once: every rank's psi on its band of latitudes and its share of the channels."""
    az = 2 if world % 2 == 0 else 1
    polar = world // az
    nlon_out, nlon = ranks[0][4:6]
    shares = _cut(size.channels, az)
    sphere = torch.zeros(3, size.nlat, nlon_out, size.batch, size.channels, dtype=dtype)
    for band in range(polar):
        x = torch.cat([ranks[band * az + a][0].to(dtype) for a in range(az)], dim=3)
        for a in range(az):
            mine = slice(shares[a], shares[a + 1])
            psi = ranks[band * az + a][1].leaves
            _contract(sphere[..., mine], x[:, mine], psi, nlon // nlon_out, nlon_out)
    lats, lons = _cut(size.nlat, polar), _cut(nlon_out, az)
    outputs = []
    for rank, args in enumerate(ranks):
        band, a = divmod(rank, az)
        tile = sphere[:, lats[band] : lats[band + 1], lons[a] : lons[a + 1]]
        weight, mixing, bias = args[2].to(dtype), args[3], args[8]
        pieces = zip(tile.chunk(mixing, dim=4), weight.chunk(mixing), strict=True)
        out = torch.cat([torch.einsum("ktpbc,ock->botp", *pair) for pair in pieces], dim=1)
        outputs.append(out if bias is None else out + bias.to(dtype)[:, None, None])
    return outputs

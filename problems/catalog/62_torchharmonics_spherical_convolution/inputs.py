import torch

from problems.leaves import Group, Made

KERNELS = 3


def _azimuth(world):
    return 2 if world % 2 == 0 else 1


def _members(world):
    """(azimuth groups, polar groups), each a list of rank tuples; rank = polar index * azimuth size + azimuth index."""
    az = _azimuth(world)
    rows = [tuple(range(first, first + az)) for first in range(0, world, az)]
    return rows, [tuple(range(first, world, az)) for first in range(az)]


def groups(world):
    rows, columns = _members(world)
    return list(dict.fromkeys(rows + columns))


def chunks(length, parts):
    """ceil(length / parts) each and the rest last; rounded down where the last would be empty."""
    step = -(-length // parts)
    if length - step * (parts - 1) <= 0:
        step = length // parts
    return [step] * (parts - 1) + [length - step * (parts - 1)]


def _psi(draw, nlat_out, width):
    """Three to five entries for each kernel and output latitude, anywhere in the rank's tile."""
    rows = KERNELS * nlat_out
    steps = draw.integers((rows, 5), 1, max(2, width // 5))
    places = (draw.integers((rows, 1), 0, width) + steps.cumsum(1)) % width
    kept = torch.arange(5) < draw.integers((rows, 1), 3, 6)
    flat, _ = (torch.arange(rows).unsqueeze(1) * width + places)[kept].sort()
    indices = torch.stack([flat // width // nlat_out, flat // width % nlat_out, flat % width])
    return indices, draw.normal((len(flat),), torch.float32, std=0.3)


def _sparse(indices, values, nlat_out, width):
    leaves = {"indices": indices, "values": values, "size": [KERNELS, nlat_out, width], "coalesced": True}
    return Made("sparse_coo", leaves)


def build(size, world, draw):
    az = _azimuth(world)
    rows, columns = _members(world)
    lats, lons = chunks(size.nlat, world // az), chunks(size.nlon, az)
    mixing = draw.integer(1, 3) if size.channels <= 8 else 1
    biased = draw.integer(0, 4) > 0
    ranks = []
    for rank in range(world):
        nlat, nlon = lats[rank // az], lons[rank % az]
        x = draw.normal((size.batch, size.channels, nlat, nlon), torch.float32)
        psi = _sparse(*_psi(draw, size.nlat, nlat * size.nlon), size.nlat, nlat * size.nlon)
        weight = draw.normal((size.channels, size.channels // mixing, KERNELS), torch.float32)
        bias = draw.normal((size.channels,), torch.float32) if biased else None
        out = size.nlon // size.pscale
        mine = [Group(rows[rank // az]), Group(columns[rank % az])]
        ranks.append([x, psi, weight, mixing, out, size.nlon, *mine, bias])
    return ranks


def _published_psi(size, polar, nlat):
    k, t, e = torch.meshgrid(torch.arange(3), torch.arange(size.nlat), torch.arange(4), indexing="ij")
    place = ((t - polar * nlat) % nlat) * size.nlon + (t + e * (k + 1)) % size.nlon
    return torch.stack([k.flatten(), t.flatten(), place.flatten()])


def upstream(size, world, trial):
    az = _azimuth(world)
    rows, columns = _members(world)
    lats, lons = chunks(size.nlat, world // az), chunks(size.nlon, az)
    ranks = []
    for rank in range(world):
        nlat, c = lats[rank // az], size.channels
        torch.manual_seed(42 + 1000 * 62 + rank + 1000003 * trial)
        x = torch.randn(size.batch, c, nlat, lons[rank % az])
        weight, bias = torch.randn(c, c, KERNELS), torch.randn(c)
        values = 0.05 * torch.randn(KERNELS * size.nlat * 4)
        indices = _published_psi(size, rank // az, nlat)
        order = ((indices[0] * size.nlat + indices[1]) * nlat * size.nlon + indices[2]).argsort()
        psi = _sparse(indices[:, order], values[order], size.nlat, nlat * size.nlon)
        mine = [Group(rows[rank // az]), Group(columns[rank % az])]
        ranks.append([x, psi, weight, 1, size.nlon // size.pscale, size.nlon, *mine, bias])
    return ranks

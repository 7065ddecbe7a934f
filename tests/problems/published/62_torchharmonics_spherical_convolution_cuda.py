import torch
import torch.distributed as dist

_dense = {}


def _chunks(n, g):
    c = -(-n // g)
    last = n - c * (g - 1)
    if last <= 0:
        c = n // g
        last = n - c * (g - 1)
    return [c] * (g - 1) + [last]


@torch.no_grad()
def solution(x, psi, weight, groups, nlon_out, nlon_in, azimuth_group=None, polar_group=None, bias=None):
    az, po = dist.get_world_size(azimuth_group), dist.get_world_size(polar_group)
    B, C, lat, lon = x.shape
    if az > 1:
        send = [t.contiguous() for t in x.split(_chunks(C, az), dim=1)]
        cs = send[dist.get_rank(azimuth_group)].shape[1]
        recv = [x.new_empty(B, cs, lat, n) for n in _chunks(nlon_in, az)]
        dist.all_to_all(recv, send, group=azimuth_group)
        x = torch.cat(recv, dim=3)
    psi = psi.coalesce()
    K, T, _ = psi.shape
    dense = psi.to_dense()
    Cl = x.shape[1]
    step = nlon_in // nlon_out
    ys = []
    for p in range(nlon_out):
        xr = torch.roll(x, -p * step, dims=3).reshape(B * Cl, lat * nlon_in)
        ys.append(torch.einsum("ktl,nl->nkt", dense, xr))
    y = torch.stack(ys, -1).reshape(B, Cl, K, T, nlon_out)
    if po > 1:
        dist.all_reduce(y, group=polar_group)
        y = y.split(_chunks(T, po), dim=3)[dist.get_rank(polar_group)]
    if az > 1:
        send = [t.contiguous() for t in y.split(_chunks(nlon_out, az), dim=4)]
        mine = send[dist.get_rank(azimuth_group)]
        recv = [mine.new_empty(B, n, *mine.shape[2:]) for n in _chunks(C, az)]
        dist.all_to_all(recv, send, group=azimuth_group)
        y = torch.cat(recv, dim=1)
    Og = weight.shape[0] // groups
    y = y.reshape(B, groups, C // groups, K, *y.shape[3:])
    out = torch.einsum("bgckhw,gock->bgohw", y, weight.view(groups, Og, C // groups, K))
    out = out.reshape(B, groups * Og, *out.shape[3:])
    return out if bias is None else out + bias.view(1, -1, 1, 1)

from typing import List, Optional

import torch
import torch.distributed as dist


def _chunks(length: int, parts: int) -> List[int]:
    """ceil(length / parts) each and the rest last; rounded down where the last would be empty."""
    step = -(-length // parts)
    if length - step * (parts - 1) <= 0:
        step = length // parts
    return [step] * (parts - 1) + [length - step * (parts - 1)]


def _transpose(
    x: torch.Tensor, split_dim: int, cat_dim: int, sizes: List[int], group: Optional[dist.ProcessGroup]
) -> torch.Tensor:
    """Split along one axis, send each rank its piece, join what arrives (sizes along cat_dim)."""
    parts = len(sizes)
    sent = [p.contiguous() for p in torch.split(x, _chunks(x.shape[split_dim], parts), dim=split_dim)]
    shape = list(sent[dist.get_rank(group)].shape)
    received = []
    for size in sizes:
        shape[cat_dim] = size
        received.append(torch.empty(shape, dtype=x.dtype, device=x.device))
    dist.all_to_all(received, sent, group=group)
    return torch.cat(received, dim=cat_dim)


def _contract(x: torch.Tensor, psi: torch.Tensor, nlon_out: int, nlon_in: int) -> torch.Tensor:
    """(B, C, lat, nlon_in) -> (B, C, K, T, nlon_out): one sparse product per output longitude."""
    batch, channels, nlat, _ = x.shape
    kernels, nlat_out, _ = psi.shape
    x = x.reshape(batch * channels, nlat, nlon_in).permute(1, 2, 0)
    x = x.expand(kernels, -1, -1, -1)
    y = torch.empty(kernels, nlat_out, nlon_out, batch * channels, dtype=x.dtype, device=x.device)
    for p in range(nlon_out):
        y[:, :, p] = torch.bmm(psi, x.reshape(kernels, nlat * nlon_in, -1))
        x = torch.roll(x, -(nlon_in // nlon_out), dims=2)
    return y.permute(3, 0, 1, 2).reshape(batch, channels, kernels, nlat_out, nlon_out)


@torch.no_grad()
def solution(
    x: torch.Tensor,
    psi: torch.Tensor,
    weight: torch.Tensor,
    groups: int,
    nlon_out: int,
    nlon_in: int,
    azimuth_group: Optional[dist.ProcessGroup] = None,
    polar_group: Optional[dist.ProcessGroup] = None,
    bias: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    azimuth, polar = dist.get_world_size(azimuth_group), dist.get_world_size(polar_group)
    channels = x.shape[1]
    if azimuth > 1:
        x = _transpose(x, 1, 3, _chunks(nlon_in, azimuth), azimuth_group)
    y = _contract(x, psi, nlon_out, nlon_in)
    if polar > 1:
        y = y.contiguous()
        dist.all_reduce(y, op=dist.ReduceOp.SUM, group=polar_group)
        y = torch.split(y, _chunks(y.shape[3], polar), dim=3)[dist.get_rank(polar_group)]
    if azimuth > 1:
        y = _transpose(y, 4, 1, _chunks(channels, azimuth), azimuth_group)
    batch, _, kernels, nlat, nlon = y.shape
    y = y.reshape(batch, groups, channels // groups, kernels, nlat, nlon)
    mixers = weight.reshape(groups, -1, channels // groups, kernels)
    out = torch.einsum("bgcktp,gock->bgotp", y, mixers).reshape(batch, -1, nlat, nlon)
    return out if bias is None else out + bias.reshape(1, -1, 1, 1)

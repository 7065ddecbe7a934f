from typing import Optional

import torch
import torch.distributed as dist


def _zigzag_order(world: int, device: torch.device) -> torch.Tensor:
    """Half-chunks as the ranks hold them, in global order: element i is where global chunk i lies."""
    chunks = torch.arange(2 * world, device=device)
    return torch.where(chunks < world, 2 * chunks, 2 * (2 * world - 1 - chunks) + 1)


def _to_channels(x: torch.Tensor, zigzag: bool, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """(Bt, C, l) of a sequence shard to (Bt, C/W, L), positions in global order."""
    world = dist.get_world_size(group)
    batch, channels, length = x.shape
    send = x.view(batch, world, channels // world, length).transpose(0, 1).contiguous()
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send, group=group)
    whole = received.permute(1, 2, 0, 3).reshape(batch, channels // world, world * length)
    if zigzag:
        halves = whole.view(batch, channels // world, 2 * world, length // 2)
        whole = halves[:, :, _zigzag_order(world, x.device)].reshape(whole.shape)
    return whole


def _to_sequence(x: torch.Tensor, zigzag: bool, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """(Bt, C/W, L) in global order to (Bt, C, l) of this rank's positions."""
    world = dist.get_world_size(group)
    batch, mine, total = x.shape
    if zigzag:
        halves = x.view(batch, mine, 2 * world, total // world // 2)
        x = halves[:, :, torch.argsort(_zigzag_order(world, x.device))].reshape(x.shape)
    send = x.view(batch, mine, world, total // world).permute(2, 0, 1, 3).contiguous()
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send, group=group)
    return received.transpose(0, 1).reshape(batch, mine * world, total // world)


def _fft_conv(u: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Causal convolution of each channel of u with its filter, plus bias * u; fp32 inside."""
    size = 2 * u.shape[-1]
    wide = u.to(torch.float32)
    filter_spectrum = torch.fft.rfft(filters.to(torch.float32), n=size) / size
    spectrum = torch.fft.rfft(wide, n=size)
    y = torch.fft.irfft(spectrum * filter_spectrum, n=size, norm="forward")[..., : u.shape[-1]]
    return (y + wide * bias.to(torch.float32).unsqueeze(-1)).to(u.dtype)


@torch.no_grad()
def solution(
    x1_seq: torch.Tensor,
    x2_seq: torch.Tensor,
    v_seq: torch.Tensor,
    h: torch.Tensor,
    conv_bias: torch.Tensor,
    num_groups: int,
    group_dim: int,
    group: Optional[dist.ProcessGroup] = None,
    with_zigzag_splitting: bool = True,
) -> torch.Tensor:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    x1, x2, v = (_to_channels(x, with_zigzag_splitting, group) for x in (x1_seq, x2_seq, v_seq))
    groups, channels = num_groups // world, x1.shape[1]
    filters = h[rank * groups : (rank + 1) * groups].repeat_interleave(group_dim, dim=0)
    bias = conv_bias[rank * channels : (rank + 1) * channels]
    z = x1 * _fft_conv(x2 * v, filters, bias)
    return _to_sequence(z, with_zigzag_splitting, group).transpose(1, 2).contiguous()

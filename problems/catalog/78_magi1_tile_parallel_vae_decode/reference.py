import math
from typing import Dict, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

Index = Tuple[int, int, int]


def _slices(shape: Sequence[int], tile: Sequence[int], overlap: Sequence[float]) -> Dict[Index, tuple]:
    """Where each tile lies in the latent, by (t, h, w) index in row-major order."""
    strides = [int(size * (1 - share)) for size, share in zip(tile, overlap, strict=True)]
    if min(strides) <= 0:
        raise ValueError("the overlap leaves no stride")
    starts = [[i * step for i in range(math.ceil(n / step))] for n, step in zip(shape, strides, strict=True)]
    return {
        (i, j, k): tuple(slice(at, at + size) for at, size in zip((t, h, w), tile, strict=True))
        for i, t in enumerate(starts[0])
        for j, h in enumerate(starts[1])
        for k, w in enumerate(starts[2])
    }


def _owned(z: torch.Tensor, places: Dict[Index, tuple], rank: int, world: int) -> List[Index]:
    """This rank's tiles: largest first, dealt out one by one."""
    order = sorted(places, key=lambda index: -z[(slice(None), slice(None), *places[index])].numel())
    return order[rank::world]


def _decode(z: torch.Tensor, upsample: Sequence[int]) -> torch.Tensor:
    scale = tuple(float(n) for n in upsample)
    video = torch.nn.functional.interpolate(
        z.to(torch.float32), scale_factor=scale, mode="trilinear", align_corners=False
    )
    if video.shape[1] < 3:
        video = video.repeat(1, -(-3 // video.shape[1]), 1, 1, 1)
    return video[:, :3].to(z.dtype).contiguous()


def _share(
    tiles: Dict[Index, torch.Tensor], like: torch.Tensor, group: Optional[dist.ProcessGroup]
) -> Dict[Index, torch.Tensor]:
    """Everybody's tiles on every rank."""
    if not dist.is_initialized():
        return tiles
    world = dist.get_world_size(group)
    listed: List[list] = [[] for _ in range(world)]
    dist.all_gather_object(listed, [(index, tuple(tile.shape)) for index, tile in tiles.items()], group=group)
    flat = torch.cat([like.new_empty(0), *(tile.flatten() for tile in tiles.values())])
    counts = [sum(math.prod(shape) for _, shape in entry) for entry in listed]
    received = flat.new_empty(sum(counts))
    dist.all_to_all_single(received, flat.repeat(world), counts, [flat.numel()] * world, group=group)
    entries = [item for entry in listed for item in entry]
    pieces = received.split([math.prod(shape) for _, shape in entries])
    return {tuple(index): piece.view(shape) for (index, shape), piece in zip(entries, pieces, strict=True)}


def _blend(before: torch.Tensor, tile: torch.Tensor, dim: int, extent: int) -> None:
    """Fade from the end of `before` into the start of `tile`, in place, slice by slice."""
    extent = min(before.shape[dim], tile.shape[dim], extent)
    first = before.shape[dim] - extent
    for d in range(extent):
        faded = before.select(dim, first + d) * (1 - d / extent) + tile.select(dim, d) * (d / extent)
        tile.select(dim, d).copy_(faded)


def _finish(
    index: Index, tiles: Dict[Index, torch.Tensor], blend: Sequence[int], keep: Sequence[int]
) -> torch.Tensor:
    """The tile blended with its decoded neighbours and cropped."""
    tile = tiles[index].clone()
    for axis in range(3):
        if index[axis] > 0:
            before = tuple(n - (a == axis) for a, n in enumerate(index))
            _blend(tiles[before], tile, axis + 2, blend[axis])
    return tile[:, :, : keep[0], : keep[1], : keep[2]].contiguous()


def _assemble(tiles: Dict[Index, torch.Tensor]) -> torch.Tensor:
    """All tiles joined along width, height and time."""
    counts = [max(index[axis] for index in tiles) + 1 for axis in range(3)]
    layers = []
    for i in range(counts[0]):
        rows = [torch.cat([tiles[(i, j, k)] for k in range(counts[2])], dim=4) for j in range(counts[1])]
        layers.append(torch.cat(rows, dim=3))
    return torch.cat(layers, dim=2)


@torch.no_grad()
def solution(
    z: torch.Tensor,
    tile_latent_min_length: int,
    tile_latent_min_height: int,
    tile_latent_min_width: int,
    spatial_tile_overlap_factor: float,
    temporal_tile_overlap_factor: float,
    spatial_upsample: int,
    temporal_upsample: int,
    sr_ratio: int = 1,
    first_frame_as_image: bool = False,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    ready = dist.is_initialized()
    rank, world = (dist.get_rank(group), dist.get_world_size(group)) if ready else (0, 1)
    length = tile_latent_min_length + int(first_frame_as_image)
    tile = (length, tile_latent_min_height, tile_latent_min_width)
    overlap = (temporal_tile_overlap_factor, spatial_tile_overlap_factor, spatial_tile_overlap_factor)
    upsample = (temporal_upsample, spatial_upsample * sr_ratio, spatial_upsample * sr_ratio)
    places = _slices(z.shape[2:], tile, overlap)
    mine = _owned(z, places, rank, world)
    decoded = {index: _decode(z[(slice(None), slice(None), *places[index])], upsample) for index in mine}
    decoded = _share(decoded, z, group)
    blend = [int(n * up * share) for n, up, share in zip(tile, upsample, overlap, strict=True)]
    keep = [n * up - b for n, up, b in zip(tile, upsample, blend, strict=True)]
    blended = {index: _finish(index, decoded, blend, keep) for index in mine}
    return _assemble(_share(blended, z, group))

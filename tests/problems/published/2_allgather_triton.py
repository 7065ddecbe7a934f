import os
import torch
import torch.distributed as dist

try:
    import triton
    import triton.language as tl
    from utils.triton_utils import blockwise_barrier, get_flat_tid, sync_threads
    HAS_TRITON = True
except ImportError:
    HAS_TRITON = False

_cache = {}
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))
print(f"[rank {os.environ.get('RANK')}] triton: {HAS_TRITON}")


def solution(tensor: torch.Tensor) -> torch.Tensor:
    world = dist.get_world_size()
    key = (tensor.shape, tensor.dtype, tensor.device)
    out = _cache.get(key)
    if out is None:
        out = torch.empty((world,) + tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)
        _cache[key] = out
    work = dist.all_gather(list(out.unbind(0)), tensor, async_op=True)
    work.wait()
    return out

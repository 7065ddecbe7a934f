"""The right values in the wrong dtype: a contract error.

The gather is done in float32 and returned as it is, but the problem asks for the input's bfloat16.
Dtype and shape must be exact; the judge does not convert.
"""

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    wide = tensor.to(torch.float32)
    out = wide.new_empty((dist.get_world_size(), *wide.shape))
    dist.all_gather_into_tensor(out, wide)
    return out

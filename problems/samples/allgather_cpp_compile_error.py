"""An extension that does not compile: a build error that names the line.

The C++ function copies one row into its place, but the name of the destination is misspelt. The judge
shows the compiler's own message and the line of this file that it speaks of.
"""

import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cstring>

void copy_row(torch::Tensor target, torch::Tensor source, int64_t index) {
  char* place = static_cast<char*>(target.data_ptr()) + index * source.nbytes();
  std::memcpy(plaec, source.data_ptr(), source.nbytes());
}
"""

extension = load_inline(name="copy_row", cpp_sources=SOURCE, functions=["copy_row"])


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    world = dist.get_world_size()
    out = torch.empty((world, *tensor.shape), dtype=tensor.dtype)
    for rank in range(world):
        row = tensor.clone() if rank == dist.get_rank() else torch.empty_like(tensor)
        dist.broadcast(row, src=rank)
        extension.copy_row(out, row, rank)
    return out

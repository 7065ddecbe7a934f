"""All-reduce whose sum runs on a side stream that nobody waits for."""

import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <pybind11/pybind11.h>
#include <cstdint>

using bf16 = __nv_bfloat16;

__global__ void add_parts(const bf16* parts, bf16* out, int64_t count, int world) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += (int64_t)gridDim.x * blockDim.x) {
    float sum = 0.0f;
    for (int r = 0; r < world; ++r) sum += __bfloat162float(parts[r * count + i]);
    out[i] = __float2bfloat16_rn(sum);
  }
}

__global__ void wait_ns(int64_t ns) {
  int64_t begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

void add(int64_t parts, int64_t out, int64_t count, int world, int64_t stream) {
  static cudaStream_t side = [] { cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); return s; }();
  static cudaEvent_t ready = [] { cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventDisableTiming); return e; }();
  cudaEventRecord(ready, reinterpret_cast<cudaStream_t>(stream));
  cudaStreamWaitEvent(side, ready);
  wait_ns<<<1, 1, 0, side>>>(40000000);
  add_parts<<<32, 256, 0, side>>>(reinterpret_cast<const bf16*>(parts), reinterpret_cast<bf16*>(out), count, world);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add", &add); }
"""

_ext = load_inline(
    name="g01_side_stream_left_open",
    cpp_sources="",
    cuda_sources=CUDA,
    extra_cuda_cflags=["-O3"],
    with_cuda=True,
    no_implicit_headers=True,
)


def _stream() -> int:
    return torch.cuda.current_stream().cuda_stream


def _gathered(tensor: torch.Tensor) -> torch.Tensor:
    parts = torch.empty((dist.get_world_size(), *tensor.shape), dtype=tensor.dtype, device=tensor.device)
    dist.all_gather_into_tensor(parts, tensor.contiguous())
    return parts


_kept = []


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    parts = _gathered(tensor)
    out = torch.empty_like(tensor)
    _kept.append((parts, out))
    _ext.add(parts.data_ptr(), out.data_ptr(), tensor.numel(), dist.get_world_size(), _stream())
    return out

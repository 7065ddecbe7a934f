"""Ulysses exchange of a fused QKV projection as one pull kernel.

The library form cuts, copies, exchanges and joins: four passes over the data. Here every rank puts its projection
into a symmetric buffer once, and one kernel reads from the peers exactly the heads that it needs, already at the
place where the result wants them. A run of H/W elements is contiguous on both sides; it is moved in 16-byte units
where its size allows it, in 8- or 2-byte units otherwise.
"""

from typing import Optional

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch.utils.cpp_extension import load_inline

BLOCKS = 16
CUDA = r"""
#include <cuda_runtime.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <cstdint>
#include <stdexcept>
#include <vector>

struct Peers { const char* data[8]; unsigned* flags[8]; };

__device__ void meet(const Peers& peers, int me, int world, unsigned seq) {
  __syncthreads();
  if ((int)threadIdx.x < world) {
    unsigned* theirs = peers.flags[threadIdx.x] + blockIdx.x * 8 + me;
    unsigned* mine = peers.flags[me] + blockIdx.x * 8 + threadIdx.x;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(seq) : "memory");
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
    } while ((int)(seen - seq) < 0);
  }
  __syncthreads();
}

// A row is one token: three parts (query, key, value) of `world` runs, `run` vectors each. `inner` is the number
// of rows of one rank that stay together in the result: T for the layout (B, T, …), all rows for (T, B, …).
template <typename Vec>
__global__ void pull(Peers peers, Vec* out, int64_t rows, int64_t inner, int64_t run, int me, int world,
                     unsigned seq) {
  meet(peers, me, world, seq);
  const int64_t width = 3 * run, total = rows * width;
  for (int turn = 0; turn < world; ++turn) {
    const int peer = (me + turn) % world;
    const Vec* from = reinterpret_cast<const Vec*>(peers.data[peer]);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < total;
         i += (int64_t)gridDim.x * blockDim.x) {
      const int64_t row = i / width, column = i % width, part = column / run, unit = column % run;
      const int64_t outer = row / inner, place = row % inner;
      const int64_t target = (outer * world + peer) * inner + place;
      out[target * width + column] = from[((row * 3 + part) * world + me) * run + unit];
    }
  }
  meet(peers, me, world, seq + 1);
}

void exchange(std::vector<int64_t> data, std::vector<int64_t> flags, int64_t out, int64_t rows, int64_t inner,
              int64_t run_bytes, int me, int64_t seq, int blocks, int64_t stream) {
  Peers peers{};
  int world = (int)data.size();
  for (int r = 0; r < world; ++r) {
    peers.data[r] = reinterpret_cast<const char*>(data[r]);
    peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
  }
  auto s = reinterpret_cast<cudaStream_t>(stream);
  auto n = (unsigned)seq;
  if (run_bytes % 16 == 0)
    pull<uint4><<<blocks, 512, 0, s>>>(peers, reinterpret_cast<uint4*>(out), rows, inner, run_bytes / 16, me,
                                       world, n);
  else if (run_bytes % 8 == 0)
    pull<uint2><<<blocks, 512, 0, s>>>(peers, reinterpret_cast<uint2*>(out), rows, inner, run_bytes / 8, me,
                                       world, n);
  else
    pull<uint16_t><<<blocks, 512, 0, s>>>(peers, reinterpret_cast<uint16_t*>(out), rows, inner, run_bytes / 2,
                                          me, world, n);
  if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("exchange", &exchange); }
"""

_ext = load_inline(
    name="ulysses_qkv_pull",
    cpp_sources="",
    cuda_sources=CUDA,
    extra_cuda_cflags=["-O3"],
    with_cuda=True,
    no_implicit_headers=True,
)


class _State:
    """The symmetric buffer and the flags for one size of projection."""

    kept: dict[int, "_State"] = {}

    def __init__(self, nbytes: int, device: torch.device) -> None:
        self.data = symm_mem.empty(nbytes, dtype=torch.uint8, device=device)
        self.data_ptrs = symm_mem.rendezvous(self.data, dist.group.WORLD).buffer_ptrs
        self.flags = symm_mem.empty(BLOCKS * 8, dtype=torch.int32, device=device).zero_()
        self.flag_ptrs = symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs
        self.sequence = 1
        torch.cuda.synchronize()
        dist.barrier()

    @classmethod
    def get(cls, nbytes: int, device: torch.device) -> "_State":
        if nbytes not in cls.kept:
            cls.kept[nbytes] = cls(nbytes, device)
        return cls.kept[nbytes]


@torch.no_grad()
def solution(
    qkv_tensor: torch.Tensor,
    seq_dim: int,
    group: Optional[dist.ProcessGroup] = None,
    unpadded_dim_size: Optional[int] = None,
    restore_shape: bool = True,
) -> torch.Tensor:
    world, rank = dist.get_world_size(), dist.get_rank()
    x = qkv_tensor.contiguous()
    first, second, width = x.shape
    heads = width // 3 // world
    state = _State.get(x.numel() * x.element_size(), x.device)
    state.data.copy_(x.reshape(-1).view(torch.uint8))
    shape = (first * world, second) if seq_dim == 0 else (first, second * world)
    out = torch.empty((*shape, 3, heads), dtype=x.dtype, device=x.device)
    inner = first * second if seq_dim == 0 else second
    stream = torch.cuda.current_stream().cuda_stream
    _ext.exchange(
        list(state.data_ptrs), list(state.flag_ptrs), out.data_ptr(), first * second, inner,
        heads * x.element_size(), rank, state.sequence, BLOCKS, stream,
    )  # fmt: skip
    state.sequence += 2
    if restore_shape:
        out = out.flatten(-2)
    if unpadded_dim_size and unpadded_dim_size % world != 0:
        out = out.narrow(seq_dim, 0, unpadded_dim_size)
    return out

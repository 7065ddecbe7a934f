"""Two-shot all-reduce with device barriers.

First shot: every rank adds up its own share of the elements, read from all peers, in fp32. Second shot: it stores
the sums in every peer's result buffer. Two device barriers (st.release.sys and ld.acquire.sys on flags in symmetric
memory) order the shots. Each rank moves 2 (W-1)/W of the message, a one-shot all-reduce W-1 times the message.
"""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from utils.cuda_helpers import compile_cuda_extension

BLOCKS = 16
CUDA = r"""
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <cstdint>
#include <stdexcept>
#include <vector>

struct Peers { uint4* data[8]; unsigned* flags[8]; };

__device__ void meet(const Peers& peers, int me, int world, unsigned seq) {
  __syncthreads();
  if ((int)threadIdx.x < world) {
    unsigned* theirs = peers.flags[threadIdx.x] + blockIdx.x * 8 + me;
    unsigned* mine = peers.flags[me] + blockIdx.x * 8 + threadIdx.x;
    __threadfence_system();
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(seq) : "memory");
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
    } while ((int)(seen - seq) < 0);
  }
  __syncthreads();
}

__device__ void add(float (&sum)[8], uint4 packed) {
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&packed);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float2 both = __bfloat1622float2(pairs[k]);
    sum[2 * k] += both.x;
    sum[2 * k + 1] += both.y;
  }
}

// The message lies in [0, count) of a symmetric buffer, the result in [count, 2 count), in units of 8 elements.
// Within each rank's share, block b of every rank works on the same indices: a meeting of the blocks b suffices.
__global__ void two_shot(Peers peers, const uint4* in, uint4* out, int64_t count, int me, int world,
                         unsigned seq) {
  const int64_t share = (count + world - 1) / world;
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
  for (int owner = 0; owner < world; ++owner)
    for (int64_t i = first; i < share && owner * share + i < count; i += step)
      peers.data[me][owner * share + i] = in[owner * share + i];
  meet(peers, me, world, seq);
  for (int64_t i = first; i < share && me * share + i < count; i += step) {
    const int64_t at = me * share + i;
    float sum[8] = {};
    for (int peer = 0; peer < world; ++peer) add(sum, peers.data[peer][at]);
    uint4 packed;
    __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
    for (int k = 0; k < 4; ++k) pairs[k] = __floats2bfloat162_rn(sum[2 * k], sum[2 * k + 1]);
    for (int turn = 0; turn < world; ++turn) peers.data[(me + turn) % world][count + at] = packed;
  }
  meet(peers, me, world, seq + 1);
  for (int owner = 0; owner < world; ++owner)
    for (int64_t i = first; i < share && owner * share + i < count; i += step)
      out[owner * share + i] = peers.data[me][count + owner * share + i];
}

void all_reduce(std::vector<int64_t> data, std::vector<int64_t> flags, int64_t in, int64_t out, int64_t count,
                int me, int64_t seq, int blocks, int64_t stream) {
  Peers peers{};
  int world = (int)data.size();
  for (int r = 0; r < world; ++r) {
    peers.data[r] = reinterpret_cast<uint4*>(data[r]);
    peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
  }
  two_shot<<<blocks, 512, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      peers, reinterpret_cast<const uint4*>(in), reinterpret_cast<uint4*>(out), count, me, world, (unsigned)seq);
  if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("all_reduce", &all_reduce); }
"""

_ext = compile_cuda_extension("allreduce_two_shot", CUDA)


class _State:
    """The symmetric buffer (message and result) and the flags for one message size."""

    kept: dict[int, "_State"] = {}

    def __init__(self, count: int, device: torch.device) -> None:
        self.data = symm_mem.empty(32 * count, dtype=torch.uint8, device=device)
        self.data_ptrs = symm_mem.rendezvous(self.data, dist.group.WORLD).buffer_ptrs
        self.flags = symm_mem.empty(BLOCKS * 8, dtype=torch.int32, device=device).zero_()
        self.flag_ptrs = symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs
        self.sequence = 1
        torch.cuda.synchronize()
        dist.barrier()

    @classmethod
    def get(cls, count: int, device: torch.device) -> "_State":
        if count not in cls.kept:
            cls.kept[count] = cls(count, device)
        return cls.kept[count]


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.contiguous().reshape(-1)
    elements = flat.numel()
    if elements % 8 or flat.data_ptr() % 16:
        flat = torch.nn.functional.pad(flat, (0, -elements % 8)).clone()
    count = flat.numel() // 8
    state = _State.get(count, tensor.device)
    out = torch.empty_like(flat)
    stream = torch.cuda.current_stream().cuda_stream
    _ext.all_reduce(
        list(state.data_ptrs), list(state.flag_ptrs), flat.data_ptr(), out.data_ptr(), count, dist.get_rank(),
        state.sequence, BLOCKS, stream,
    )  # fmt: skip
    state.sequence += 2
    return out[:elements].view(tensor.shape)

"""Two-shot all-reduce with device barriers.

First shot: every rank adds up its own share of the elements, read from all peers, in fp32. Second shot: it stores
the sums in every peer's result buffer. Two device barriers (st.release.sys and ld.acquire.sys on flags in symmetric
memory) order the shots. Each rank moves 2 (W-1)/W of the message, a one-shot all-reduce W-1 times the message. The own
share never goes through symmetric memory.
"""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from utils.cuda_helpers import compile_cuda_extension

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
  for (int turn = 1; turn < world; ++turn) {
    const int owner = (me + turn) % world;
    for (int64_t i = first; i < share && owner * share + i < count; i += step)
      peers.data[me][owner * share + i] = in[owner * share + i];
  }
  meet(peers, me, world, seq);
  for (int64_t i = first; i < share && me * share + i < count; i += step) {
    const int64_t at = me * share + i;
    float sum[8] = {};
    uint4 addends[8];
#pragma unroll
    for (int peer = 0; peer < 8; ++peer)  // all loads under way before the first sum
      if (peer < world) addends[peer] = peer == me ? in[at] : peers.data[peer][at];
#pragma unroll
    for (int peer = 0; peer < 8; ++peer)
      if (peer < world) add(sum, addends[peer]);
    uint4 packed;
    __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
    for (int k = 0; k < 4; ++k) pairs[k] = __floats2bfloat162_rn(sum[2 * k], sum[2 * k + 1]);
    for (int turn = 1; turn < world; ++turn) peers.data[(me + turn) % world][count + at] = packed;
    out[at] = packed;
  }
  meet(peers, me, world, seq + 1);
  for (int turn = 1; turn < world; ++turn) {
    const int owner = (me + turn) % world;
    for (int64_t i = first; i < share && owner * share + i < count; i += step)
      out[owner * share + i] = peers.data[me][count + owner * share + i];
  }
}

// Where one message size meets its peers, and the number of the next meeting.
struct Room {
  Peers peers{};
  int me, world, blocks;
  int64_t count;
  unsigned seq = 1;

  Room(std::vector<int64_t> data, std::vector<int64_t> flags, int me, int blocks, int64_t count)
      : me(me), world((int)data.size()), blocks(blocks), count(count) {
    for (int r = 0; r < world; ++r) {
      peers.data[r] = reinterpret_cast<uint4*>(data[r]);
      peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
    }
  }

  void all_reduce(int64_t in, int64_t out, int64_t stream) {
    const int64_t needed = ((count + world - 1) / world + 511) / 512;
    const int grid = (int)(needed < 1 ? 1 : needed < blocks ? needed : blocks);
    two_shot<<<grid, 512, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        peers, reinterpret_cast<const uint4*>(in), reinterpret_cast<uint4*>(out), count, me, world, seq);
    seq += 2;
    if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
  }
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  pybind11::class_<Room>(m, "Room")
      .def(pybind11::init<std::vector<int64_t>, std::vector<int64_t>, int, int, int64_t>())
      .def("all_reduce", &Room::all_reduce);
}
"""

_ext = compile_cuda_extension("allreduce_two_shot", CUDA)


def _grid(device: torch.device) -> int:
    """Most blocks of a kernel: nearly a processor each, or few where several ranks share one card.

    Blocks that meet must all be resident, those of every rank on the card together.
    """
    cards = torch.empty(dist.get_world_size(), dtype=torch.int64, device=device)
    dist.all_gather_into_tensor(cards, torch.tensor([device.index], device=device))
    return 16 if len(cards.unique()) < len(cards) else 128


class _State:
    """The symmetric buffer (message and result) and the flags for one message size."""

    kept: dict[int, "_State"] = {}

    def __init__(self, count: int, device: torch.device) -> None:
        blocks = _grid(device)
        self.data = symm_mem.empty(32 * count, dtype=torch.uint8, device=device)
        data = symm_mem.rendezvous(self.data, dist.group.WORLD).buffer_ptrs
        self.flags = symm_mem.empty(blocks * 8, dtype=torch.int32, device=device).zero_()
        flags = symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs
        self.room = _ext.Room(list(data), list(flags), dist.get_rank(), blocks, count)
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
    state.room.all_reduce(flat.data_ptr(), out.data_ptr(), torch.cuda.current_stream().cuda_stream)
    return out[:elements].view(tensor.shape)

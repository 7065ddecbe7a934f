"""All-gather that pulls from peer pointers with the widest aligned load.

One kernel: it copies its rank's tensor into a symmetric buffer (and into the result), meets the peers, and reads
their buffers directly, 16 bytes per load where the size of a slice allows it, 8 or 2 bytes where it does not. Buffers
alternate from call to call, so that one meeting per call is enough: who passes the next has read all of this one.
"""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <cstdint>
#include <stdexcept>
#include <vector>

struct Peers { char* data[8]; unsigned* flags[8]; };

// Block b of every rank meets block b of every other: write `seq` to each peer's flag, wait for theirs.
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

// to[i] = from[i] for this thread's share of [0, count), four loads under way at a time: one is too few to fill a link.
template <typename Vec>
__device__ void move(Vec* to, const Vec* from, int64_t count) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    const Vec a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
    to[i] = a, to[i + step] = b, to[i + 2 * step] = c, to[i + 3 * step] = d;
  }
  for (; i < count; i += step) to[i] = from[i];
}

// Block b writes and reads the same indices on every rank, so a meeting of the blocks b is all that is needed.
template <typename Vec>
__global__ void pull(Peers peers, const Vec* in, Vec* out, int64_t count, int64_t shift, int me, int world,
                     unsigned seq) {
  move(reinterpret_cast<Vec*>(peers.data[me] + shift), in, count);
  meet(peers, me, world, seq);
  move(out + me * count, in, count);
  for (int turn = 1; turn < world; ++turn) {
    const int peer = (me + turn) % world;  // everybody starts elsewhere, so that no link is asked by all at once
    move(out + peer * count, reinterpret_cast<const Vec*>(peers.data[peer] + shift), count);
  }
}

// Where one message size meets its peers: two buffers of `half` bytes, and the number of the next meeting.
struct Room {
  Peers peers{};
  int me, world, blocks;
  int64_t bytes, half;
  unsigned seq = 1;

  Room(std::vector<int64_t> data, std::vector<int64_t> flags, int me, int blocks, int64_t bytes, int64_t half)
      : me(me), world((int)data.size()), blocks(blocks), bytes(bytes), half(half) {
    for (int r = 0; r < world; ++r) {
      peers.data[r] = reinterpret_cast<char*>(data[r]);
      peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
    }
  }

  // The width depends on the size alone: ranks that differed in it would meet about different indices.
  template <typename Vec>
  void launch(int64_t in, int64_t out, int64_t stream) {
    const int64_t count = bytes / (int64_t)sizeof(Vec), needed = (count + 511) / 512;
    const int grid = (int)(needed < 1 ? 1 : needed < blocks ? needed : blocks);
    pull<Vec><<<grid, 512, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        peers, reinterpret_cast<const Vec*>(in), reinterpret_cast<Vec*>(out), count, half * (seq % 2), me, world,
        seq);
    ++seq;
    if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
  }

  void gather(int64_t in, int64_t out, int64_t stream) {
    if (bytes % 16 == 0)
      launch<uint4>(in, out, stream);
    else if (bytes % 8 == 0)
      launch<uint2>(in, out, stream);
    else
      launch<uint16_t>(in, out, stream);
  }
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  pybind11::class_<Room>(m, "Room")
      .def(pybind11::init<std::vector<int64_t>, std::vector<int64_t>, int, int, int64_t, int64_t>())
      .def("gather", &Room::gather);
}
"""

_ext = load_inline(
    name="allgather_vector_pull",
    cpp_sources="",
    cuda_sources=CUDA,
    extra_cuda_cflags=["-O3"],
    with_cuda=True,
    no_implicit_headers=True,
)


def _grid(device: torch.device) -> int:
    """Most blocks of a kernel: nearly a processor each, or few where several ranks share one card.

    Blocks that meet must all be resident, those of every rank on the card together.
    """
    cards = torch.empty(dist.get_world_size(), dtype=torch.int64, device=device)
    dist.all_gather_into_tensor(cards, torch.tensor([device.index], device=device))
    return 16 if len(cards.unique()) < len(cards) else 128


class _State:
    """Two symmetric buffers and the flags for one message size, made at the first call of that size."""

    kept: dict[int, "_State"] = {}

    def __init__(self, nbytes: int, device: torch.device) -> None:
        half, blocks = (nbytes + 15) // 16 * 16, _grid(device)
        self.data = symm_mem.empty(2 * half, dtype=torch.uint8, device=device)
        data = symm_mem.rendezvous(self.data, dist.group.WORLD).buffer_ptrs
        self.flags = symm_mem.empty(blocks * 8, dtype=torch.int32, device=device).zero_()
        flags = symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs
        self.room = _ext.Room(list(data), list(flags), dist.get_rank(), blocks, nbytes, half)
        torch.cuda.synchronize()
        dist.barrier()

    @classmethod
    def get(cls, nbytes: int, device: torch.device) -> "_State":
        if nbytes not in cls.kept:
            cls.kept[nbytes] = cls(nbytes, device)
        return cls.kept[nbytes]


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.contiguous()
    if tensor.data_ptr() % 16:
        tensor = tensor.clone()
    state = _State.get(tensor.numel() * tensor.element_size(), tensor.device)
    out = torch.empty((dist.get_world_size(), *tensor.shape), dtype=tensor.dtype, device=tensor.device)
    state.room.gather(tensor.data_ptr(), out.data_ptr(), torch.cuda.current_stream().cuda_stream)
    return out

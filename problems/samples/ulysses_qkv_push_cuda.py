"""Ulysses exchange of a fused QKV projection as one kernel.

The library form cuts, copies, exchanges and joins: four passes over the data. Here half of a block's warps store what
the peers need of this rank's projection straight into the peers' symmetric buffers, while the other half brings its own
heads to the result; as soon as a part has arrived they bring that there, too. A run of H/W elements is contiguous on
both sides; it is moved in 16-byte units where its size allows it, in 8- or 2-byte units otherwise. Buffers alternate
from call to call, so that nobody has to say that a buffer is free again.
"""

from typing import Optional

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

constexpr int SIDE = 256;  // threads of a block that send, and as many that take in

// Threads of one side wait for each other; `side` names the hardware barrier.
__device__ void join(int side) { asm volatile("bar.sync %0, %1;" ::"r"(side), "n"(SIDE) : "memory"); }

// To the equal block of every rank: what this side stored before is there.
__device__ void tell(const Peers& peers, int me, int world, int thread, unsigned seq) {
  join(1);
  if (thread < world) {
    unsigned* theirs = peers.flags[thread] + blockIdx.x * 8 + me;
    __threadfence_system();
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(seq) : "memory");
  }
}

__device__ void hear(const Peers& peers, int me, int world, int thread, unsigned seq) {
  if (thread < world) {
    unsigned* mine = peers.flags[me] + blockIdx.x * 8 + thread;
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
    } while ((int)(seen - seq) < 0);
  }
  join(2);
}

template <typename Vec>
__device__ void move(Vec* to, const Vec* from, int run, int lane, int lanes) {
  int i = lane;
  for (; i + 3 * lanes < run; i += 4 * lanes) {
    const Vec a = from[i], b = from[i + lanes], c = from[i + 2 * lanes], d = from[i + 3 * lanes];
    to[i] = a, to[i + lanes] = b, to[i + 2 * lanes] = c, to[i + 3 * lanes] = d;
  }
  for (; i < run; i += lanes) to[i] = from[i];
}

// A row is one token: three parts (query, key, value) of `world` runs, `run` vectors each. `inner` is the number
// of rows of one rank that stay together in the result: T for the layout (B, T, ...), all rows for (T, B, ...).
// A team of 2^bits threads moves a run, so that the places are worked out once for a run. Teams that have the same
// number on two ranks send and take in the same runs: equal blocks need to hear each other, and no others.
// The runs go in two parts, the larger first: while the second is on its way the first is brought home.
template <typename Vec>
__global__ void __launch_bounds__(2 * SIDE) exchange(Peers peers, const Vec* in, Vec* out, unsigned rows,
                                                     unsigned inner, int run, int bits, int64_t shift, int me,
                                                     int world, unsigned seq) {
  const int side = (int)threadIdx.x / SIDE, local = (int)threadIdx.x % SIDE;
  const unsigned thread = blockIdx.x * SIDE + local;
  const unsigned team = thread >> bits, teams = (gridDim.x * SIDE) >> bits;
  const int lanes = 1 << bits, lane = (int)(thread & (lanes - 1));
  const unsigned runs = 3 * rows, turns = (runs + teams - 1) / teams;
  const unsigned cut = (turns + 1) / 2 * teams;
  const int parts = cut < runs ? 2 : 1;

  if (side == 0) {
    for (int part = 0; part < parts; ++part) {
      const unsigned end = part + 1 < parts ? cut : runs;
      for (unsigned r = team + part * cut; r < end; r += teams)
        for (int turn = 1; turn < world; ++turn) {
          const int peer = (me + turn) % world;
          Vec* theirs = reinterpret_cast<Vec*>(peers.data[peer] + shift);
          move(theirs + ((int64_t)r * world + me) * run, in + ((int64_t)r * world + peer) * run, run, lane, lanes);
        }
      tell(peers, me, world, local, seq + part);
    }
    return;
  }

  const Vec* arrived = reinterpret_cast<const Vec*>(peers.data[me] + shift);
  auto bring = [&](const Vec* from, unsigned r, int peer) {
    const unsigned row = r / 3, part = r % 3, outer = row / inner, place = row % inner;
    const int64_t target = ((int64_t)outer * world + peer) * inner + place;
    move(out + (target * 3 + part) * run, from + ((int64_t)r * world + peer) * run, run, lane, lanes);
  };
  for (unsigned r = team; r < runs; r += teams) bring(in, r, me);
  for (int part = 0; part < parts; ++part) {
    hear(peers, me, world, local, seq + part);
    const unsigned end = part + 1 < parts ? cut : runs;
    for (unsigned r = team + part * cut; r < end; r += teams)
      for (int turn = 1; turn < world; ++turn) bring(arrived, r, (me + turn) % world);
  }
}

// Where one size of projection meets its peers: two buffers of `half` bytes, and the number of the next part.
struct Room {
  Peers peers{};
  int me, world, blocks;
  int64_t half;
  unsigned seq = 2;

  Room(std::vector<int64_t> data, std::vector<int64_t> flags, int me, int blocks, int64_t half)
      : me(me), world((int)data.size()), blocks(blocks), half(half) {
    for (int r = 0; r < world; ++r) {
      peers.data[r] = reinterpret_cast<char*>(data[r]);
      peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
    }
  }

  template <typename Vec>
  void launch(int64_t in, int64_t out, int64_t rows, int64_t inner, int64_t run_bytes, int64_t stream) {
    const int run = (int)(run_bytes / (int64_t)sizeof(Vec));
    int bits = 0;
    while (bits < 5 && (1 << bits) < run) ++bits;
    const int64_t needed = ((3 * rows << bits) + SIDE - 1) / SIDE;
    const int grid = (int)(needed < 1 ? 1 : needed < blocks ? needed : blocks);
    exchange<Vec><<<grid, 2 * SIDE, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        peers, reinterpret_cast<const Vec*>(in), reinterpret_cast<Vec*>(out), (unsigned)rows, (unsigned)inner, run,
        bits, half * (seq / 2 % 2), me, world, seq);
    seq += 2;
    if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
  }

  void all_to_all(int64_t in, int64_t out, int64_t rows, int64_t inner, int64_t run_bytes, int64_t stream) {
    if (run_bytes % 16 == 0)
      launch<uint4>(in, out, rows, inner, run_bytes, stream);
    else if (run_bytes % 8 == 0)
      launch<uint2>(in, out, rows, inner, run_bytes, stream);
    else
      launch<uint16_t>(in, out, rows, inner, run_bytes, stream);
  }
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  pybind11::class_<Room>(m, "Room")
      .def(pybind11::init<std::vector<int64_t>, std::vector<int64_t>, int, int, int64_t>())
      .def("all_to_all", &Room::all_to_all);
}
"""

_ext = load_inline(
    name="ulysses_qkv_push",
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
    """Two symmetric buffers and the flags for one shape of projection.

    By shape, not by size: equal runs must belong to equal blocks in the calls before and after. Whose kernel has ended has
    heard every block of every peer begin it, and so end the one before: the buffer of the call before is free.
    """

    kept: dict[tuple[int, ...], "_State"] = {}

    def __init__(self, nbytes: int, device: torch.device) -> None:
        half, blocks = (nbytes + 15) // 16 * 16, _grid(device)
        self.data = symm_mem.empty(2 * half, dtype=torch.uint8, device=device)
        data = symm_mem.rendezvous(self.data, dist.group.WORLD).buffer_ptrs
        self.flags = symm_mem.empty(blocks * 8, dtype=torch.int32, device=device).zero_()
        flags = symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs
        self.room = _ext.Room(list(data), list(flags), dist.get_rank(), blocks, half)
        torch.cuda.synchronize()
        dist.barrier()

    @classmethod
    def get(cls, x: torch.Tensor) -> "_State":
        key = (*x.shape, x.element_size())
        if key not in cls.kept:
            cls.kept[key] = cls(x.numel() * x.element_size(), x.device)
        return cls.kept[key]


@torch.no_grad()
def solution(
    qkv_tensor: torch.Tensor,
    seq_dim: int,
    group: Optional[dist.ProcessGroup] = None,
    unpadded_dim_size: Optional[int] = None,
    restore_shape: bool = True,
) -> torch.Tensor:
    world = dist.get_world_size()
    x = qkv_tensor.contiguous()
    if x.data_ptr() % 16:
        x = x.clone()
    first, second, width = x.shape
    heads = width // 3 // world
    shape = (first * world, second) if seq_dim == 0 else (first, second * world)
    out = torch.empty((*shape, 3, heads), dtype=x.dtype, device=x.device)
    inner = first * second if seq_dim == 0 else second
    _State.get(x).room.all_to_all(
        x.data_ptr(), out.data_ptr(), first * second, inner, heads * x.element_size(),
        torch.cuda.current_stream().cuda_stream,
    )  # fmt: skip
    if restore_shape:
        out = out.flatten(-2)
    if unpadded_dim_size and unpadded_dim_size % world != 0:
        out = out.narrow(seq_dim, 0, unpadded_dim_size)
    return out

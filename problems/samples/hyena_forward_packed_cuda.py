"""Hyena forward, context parallel, over one packed symmetric buffer.

Only u = x2 * v has to reach the channel owners and only y has to come back, so x1, x2 and v stay where they are: half
of the traffic of three all-to-alls. One symmetric allocation holds both regions. Kernel one multiplies the gates into
the u region; kernel two meets the peers and pulls whole sequences of this rank's channels, undoing the zigzag; cuFFT
convolves; kernel three pulls y back, multiplies by x1 and transposes through shared memory. Since u is rewritten
only after the second meeting of a call and y only after the first of the next, two barriers per call are enough.
"""

from typing import Optional

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <cstdint>
#include <stdexcept>
#include <vector>

using bf16 = __nv_bfloat16;
struct Peers { const bf16* data[8]; unsigned* flags[8]; };

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

__device__ bf16 times(bf16 a, bf16 b) { return __float2bfloat16_rn(__bfloat162float(a) * __bfloat162float(b)); }

// Eight products at a time, the last ones singly.
__global__ void gate(const bf16* x2, const bf16* v, bf16* u, int64_t count) {
  const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = first; i < count / 8; i += step) {
    const uint4 a = reinterpret_cast<const uint4*>(x2)[i], b = reinterpret_cast<const uint4*>(v)[i];
    uint4 products;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      reinterpret_cast<bf16*>(&products)[k] =
          times(reinterpret_cast<const bf16*>(&a)[k], reinterpret_cast<const bf16*>(&b)[k]);
    reinterpret_cast<uint4*>(u)[i] = products;
  }
  for (int64_t i = count / 8 * 8 + first; i < count; i += step) u[i] = times(x2[i], v[i]);
}

// (batch, channels of this rank, L) from every rank's (batch, all channels, l). `half` is l/2 in vectors.
template <typename Vec>
__global__ void pull_u(Peers peers, Vec* out, int64_t batch, int64_t mine, int64_t half, bool zigzag, int me,
                       int world, unsigned seq) {
  meet(peers, me, world, seq);
  // A piece is one channel's half of one rank's sequence: its place is worked out once, its vectors lie side by side.
  const int64_t pieces = batch * mine * 2 * world;
  const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
  for (int64_t p = (int64_t)blockIdx.x * warps + threadIdx.x / 32; p < pieces; p += (int64_t)gridDim.x * warps) {
    const int64_t row = p / (2 * world), channel = row % mine, sample = row / mine;
    const int chunk = (int)(p % (2 * world));
    const int peer = !zigzag ? chunk / 2 : (chunk < world ? chunk : 2 * world - 1 - chunk);
    const bool second = zigzag ? chunk >= world : chunk % 2;
    const Vec* from = reinterpret_cast<const Vec*>(peers.data[peer]) +
                      (((sample * world + me) * mine + channel) * 2 + second) * half;
    Vec* to = out + p * half;
    int64_t i = lane;
    for (; i + 96 < half; i += 128) {
      const Vec a = from[i], b = from[i + 32], c = from[i + 64], d = from[i + 96];
      to[i] = a, to[i + 32] = b, to[i + 64] = c, to[i + 96] = d;
    }
    for (; i < half; i += 32) to[i] = from[i];
  }
}

// z (batch, l, channels) = x1 * y at this rank's positions; tiles of 32 x 32 turn channels and positions.
__global__ void pull_y(Peers peers, const bf16* x1, bf16* out, int64_t batch, int64_t mine, int64_t length,
                       bool zigzag, int me, int world, unsigned seq) {
  __shared__ bf16 tile[32][34];
  meet(peers, me, world, seq);
  const int64_t channels = mine * world, half = length / 2, whole = length * world;
  const int64_t down = (channels + 31) / 32, across = (length + 31) / 32;
  for (int64_t t = blockIdx.x; t < batch * down * across; t += gridDim.x) {
    const int64_t sample = t / (down * across), c0 = t / across % down * 32, i0 = t % across * 32;
    const int64_t i = i0 + threadIdx.x % 32;
    const int64_t late = (int64_t)(2 * world - 1 - me) * half + i - half;
    const int64_t place = !zigzag ? me * length + i : (i < half ? me * half + i : late);
    for (int k = threadIdx.x / 32; k < 32; k += blockDim.x / 32) {
      const int64_t c = c0 + k;
      if (c < channels && i < length) {
        const bf16 y = peers.data[c / mine][(sample * mine + c % mine) * whole + place];
        tile[k][threadIdx.x % 32] = times(x1[(sample * channels + c) * length + i], y);
      }
    }
    __syncthreads();
    const int64_t c = c0 + threadIdx.x % 32;
    for (int k = threadIdx.x / 32; k < 32; k += blockDim.x / 32)
      if (c < channels && i0 + k < length)
        out[(sample * length + i0 + k) * channels + c] = tile[threadIdx.x % 32][k];
    __syncthreads();
  }
}

static Peers peers_of(const std::vector<int64_t>& data, const std::vector<int64_t>& flags) {
  Peers peers{};
  for (size_t r = 0; r < data.size(); ++r) {
    peers.data[r] = reinterpret_cast<const bf16*>(data[r]);
    peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
  }
  return peers;
}

static void check() {
  if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
}

void to_channels(std::vector<int64_t> data, std::vector<int64_t> flags, int64_t x2, int64_t v, int64_t out,
                 int64_t batch, int64_t mine, int64_t length, bool zigzag, int me, int64_t seq, int blocks,
                 int64_t stream) {
  auto s = reinterpret_cast<cudaStream_t>(stream);
  int world = (int)data.size();
  gate<<<4 * blocks, 256, 0, s>>>(reinterpret_cast<const bf16*>(x2), reinterpret_cast<const bf16*>(v),
                                  reinterpret_cast<bf16*>(data[me]), batch * mine * world * length);
  Peers peers = peers_of(data, flags);
  auto n = (unsigned)seq;
  if (length % 16 == 0)
    pull_u<uint4><<<blocks, 512, 0, s>>>(peers, reinterpret_cast<uint4*>(out), batch, mine, length / 16, zigzag,
                                         me, world, n);
  else
    pull_u<bf16><<<blocks, 512, 0, s>>>(peers, reinterpret_cast<bf16*>(out), batch, mine, length / 2, zigzag, me,
                                        world, n);
  check();
}

void to_sequence(std::vector<int64_t> data, std::vector<int64_t> flags, int64_t x1, int64_t out, int64_t batch,
                 int64_t mine, int64_t length, bool zigzag, int me, int64_t seq, int blocks, int64_t stream) {
  pull_y<<<blocks, 512, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      peers_of(data, flags), reinterpret_cast<const bf16*>(x1), reinterpret_cast<bf16*>(out), batch, mine, length,
      zigzag, me, (int)data.size(), (unsigned)seq);
  check();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("to_channels", &to_channels);
  m.def("to_sequence", &to_sequence);
}
"""

_ext = load_inline(
    name="hyena_forward_packed",
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
    return 32 if len(cards.unique()) < len(cards) else 128


class _State:
    """One symmetric buffer with the regions u and y, and the flags, for one number of elements."""

    kept: dict[int, "_State"] = {}

    def __init__(self, count: int, device: torch.device) -> None:
        room = (count + 7) // 8 * 8
        self.packed = symm_mem.empty(2 * room, dtype=torch.bfloat16, device=device)
        base = symm_mem.rendezvous(self.packed, dist.group.WORLD).buffer_ptrs
        self.u_ptrs, self.y_ptrs = list(base), [pointer + 2 * room for pointer in base]
        self.y = self.packed[room : room + count]
        self.blocks = _grid(device)
        self.flags = symm_mem.empty(self.blocks * 8, dtype=torch.int32, device=device).zero_()
        self.flag_ptrs = list(symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs)
        self.sequence = 1
        torch.cuda.synchronize()
        dist.barrier()

    @classmethod
    def get(cls, count: int, device: torch.device) -> "_State":
        if count not in cls.kept:
            cls.kept[count] = cls(count, device)
        return cls.kept[count]


def _convolve(u: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Causal convolution of each channel in fp32, plus bias * u; rounded once."""
    size = 2 * u.shape[-1]
    wide = u.float()
    spectrum = torch.fft.rfft(wide, n=size) * torch.fft.rfft(filters.float(), n=size)
    y = torch.fft.irfft(spectrum, n=size)[..., : u.shape[-1]]
    return torch.addcmul(y, wide, bias.float().unsqueeze(-1)).to(u.dtype)


@torch.no_grad()
def solution(
    x1_seq: torch.Tensor,
    x2_seq: torch.Tensor,
    v_seq: torch.Tensor,
    h: torch.Tensor,
    conv_bias: torch.Tensor,
    num_groups: int,
    group_dim: int,
    group: Optional[dist.ProcessGroup] = None,
    with_zigzag_splitting: bool = True,
) -> torch.Tensor:
    rank, world = dist.get_rank(), dist.get_world_size()
    x1, x2, v = x1_seq.contiguous(), x2_seq.contiguous(), v_seq.contiguous()
    batch, channels, length = x1.shape
    mine = channels // world
    state = _State.get(x1.numel(), x1.device)
    stream = torch.cuda.current_stream().cuda_stream
    u = torch.empty((batch, mine, world * length), dtype=x1.dtype, device=x1.device)
    _ext.to_channels(
        state.u_ptrs, state.flag_ptrs, x2.data_ptr(), v.data_ptr(), u.data_ptr(), batch, mine, length,
        with_zigzag_splitting, rank, state.sequence, state.blocks, stream,
    )  # fmt: skip
    groups = num_groups // world
    filters = h[rank * groups : (rank + 1) * groups].repeat_interleave(group_dim, dim=0)
    state.y.copy_(_convolve(u, filters, conv_bias[rank * mine : (rank + 1) * mine]).view(-1))
    out = torch.empty((batch, length, channels), dtype=x1.dtype, device=x1.device)
    _ext.to_sequence(
        state.y_ptrs, state.flag_ptrs, x1.data_ptr(), out.data_ptr(), batch, mine, length, with_zigzag_splitting,
        rank, state.sequence + 1, state.blocks, stream,
    )  # fmt: skip
    state.sequence += 2
    return out

"""Vocabulary-parallel log-probability in one kernel: warp reductions, one push of 16 bytes per token, one barrier.

A warp reads its token's local logits once and keeps a running maximum and sum. It stores (maximum, sum, target
logit, owned) as one 16-byte word on every rank. After a device barrier each rank joins the W words of each token.
The library form needs three all-reduces and passes over the logits five times. Buffers alternate from call to call,
so that one barrier is enough.
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

struct Peers { float4* words[8]; unsigned* flags[8]; };

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

// (maximum, sum of exp(x - maximum)) of two disjoint sets.
__device__ float2 join(float2 a, float2 b) {
  const float top = fmaxf(a.x, b.x);
  if (top == -INFINITY) return make_float2(top, 0.0f);
  return make_float2(top, a.y * expf(a.x - top) + b.y * expf(b.x - top));
}

// Eight logits at once: their maximum first, so that the running sum is scaled once for all of them.
__device__ float2 take(float2 state, const __nv_bfloat162* pairs) {
  float x[8];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float2 both = __bfloat1622float2(pairs[k]);
    x[2 * k] = both.x, x[2 * k + 1] = both.y;
  }
  float top = x[0], sum = 0.0f;
#pragma unroll
  for (int k = 1; k < 8; ++k) top = fmaxf(top, x[k]);
  if (top == -INFINITY) return state;
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += expf(x[k] - top);
  return join(state, make_float2(top, sum));
}

__device__ float2 of_row(const __nv_bfloat16* row, int64_t width, int lane) {
  float2 state = make_float2(-INFINITY, 0.0f);
  if (width % 8 == 0 && reinterpret_cast<uintptr_t>(row) % 16 == 0) {
    for (int64_t i = lane; i < width / 8; i += 32) {
      const uint4 packed = reinterpret_cast<const uint4*>(row)[i];
      state = take(state, reinterpret_cast<const __nv_bfloat162*>(&packed));
    }
  } else {
    for (int64_t i = lane; i < width; i += 32) state = join(state, make_float2(__bfloat162float(row[i]), 1.0f));
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const float top = __shfl_xor_sync(0xffffffffu, state.x, offset);
    const float sum = __shfl_xor_sync(0xffffffffu, state.y, offset);
    state = join(state, make_float2(top, sum));
  }
  return state;
}

// Token t belongs to the same warp on every rank, so a meeting of equal blocks orders pushes before joins.
__global__ void loss_kernel(Peers peers, const __nv_bfloat16* logits, const int64_t* target, __nv_bfloat16* out,
                            int64_t tokens, int64_t width, int64_t shift, int me, int world, unsigned seq) {
  const int lane = threadIdx.x % 32;
  const int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int64_t warps = (int64_t)gridDim.x * blockDim.x / 32;
  for (int64_t token = warp; token < tokens; token += warps) {
    const __nv_bfloat16* row = logits + token * width;
    const float2 state = of_row(row, width, lane);
    const int64_t own = target[token] - me * width;
    const bool owned = own >= 0 && own < width;
    const float picked = owned ? __bfloat162float(row[own]) : 0.0f;
    if (lane < world)
      peers.words[lane][shift + token * world + me] =
          make_float4(state.x, state.y, picked, owned ? 1.0f : 0.0f);
  }
  meet(peers, me, world, seq);
  for (int64_t token = warp; token < tokens; token += warps) {
    if (lane != 0) continue;
    const float4* words = peers.words[me] + shift + token * world;
    float2 state = make_float2(-INFINITY, 0.0f);
    float picked = 0.0f;
    bool owned = false;
    for (int peer = 0; peer < world; ++peer) {
      const float4 word = words[peer];
      state = join(state, make_float2(word.x, word.y));
      if (word.w != 0.0f) picked = word.z, owned = true;
    }
    const float loss = logf(state.y) - (owned ? picked - state.x : 0.0f);
    out[token] = __float2bfloat16_rn(loss);
  }
}

// Where one number of tokens meets its peers: two sets of `half` words, and the number of the next meeting.
struct Room {
  Peers peers{};
  int me, world, blocks;
  int64_t tokens;
  unsigned seq = 1;

  Room(std::vector<int64_t> words, std::vector<int64_t> flags, int me, int blocks, int64_t tokens)
      : me(me), world((int)words.size()), blocks(blocks), tokens(tokens) {
    for (int r = 0; r < world; ++r) {
      peers.words[r] = reinterpret_cast<float4*>(words[r]);
      peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
    }
  }

  void loss(int64_t logits, int64_t target, int64_t out, int64_t width, int64_t stream) {
    const int64_t needed = (tokens + 15) / 16;
    const int grid = (int)(needed < 1 ? 1 : needed < blocks ? needed : blocks);
    loss_kernel<<<grid, 512, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        peers, reinterpret_cast<const __nv_bfloat16*>(logits), reinterpret_cast<const int64_t*>(target),
        reinterpret_cast<__nv_bfloat16*>(out), tokens, width, tokens * world * (seq % 2), me, world, seq);
    ++seq;
    if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
  }
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  pybind11::class_<Room>(m, "Room")
      .def(pybind11::init<std::vector<int64_t>, std::vector<int64_t>, int, int, int64_t>())
      .def("loss", &Room::loss);
}
"""

_ext = load_inline(
    name="vocab_parallel_log_prob_push",
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
    """Two sets of words (one per parity of the call) and the flags for one number of tokens."""

    kept: dict[int, "_State"] = {}

    def __init__(self, tokens: int, device: torch.device) -> None:
        blocks = _grid(device)
        self.words = symm_mem.empty(2 * tokens * dist.get_world_size() * 4, dtype=torch.float32, device=device)
        words = symm_mem.rendezvous(self.words, dist.group.WORLD).buffer_ptrs
        self.flags = symm_mem.empty(blocks * 8, dtype=torch.int32, device=device).zero_()
        flags = symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs
        self.room = _ext.Room(list(words), list(flags), dist.get_rank(), blocks, tokens)
        torch.cuda.synchronize()
        dist.barrier()

    @classmethod
    def get(cls, tokens: int, device: torch.device) -> "_State":
        if tokens not in cls.kept:
            cls.kept[tokens] = cls(tokens, device)
        return cls.kept[tokens]


@torch.no_grad()
def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    logits, target = vocab_parallel_logits.contiguous(), target.contiguous()
    tokens = target.numel()
    state = _State.get(tokens, logits.device)
    out = torch.empty(target.shape, dtype=logits.dtype, device=logits.device)
    state.room.loss(
        logits.data_ptr(), target.data_ptr(), out.data_ptr(), logits.shape[-1],
        torch.cuda.current_stream().cuda_stream,
    )  # fmt: skip
    return out

"""SAM3 suppression by mask IoU with bit-packed masks and population counts.

A mask is needed in full only where it survives. So each rank packs its masks into bits (one ballot per 32 pixels),
all ranks pull the bits, a sixteenth of the bytes, and find the suppressed objects with popcount(a & b); then the
surviving masks are pulled from their owners and widened on the way. Suppressed ones become -10 and are never moved.
"""

from typing import List, Optional, Tuple

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
// In each rank's buffer: masks (bf16), then from `bits_at` packed masks, then from `scores_at` scores (bf16).
struct Peers { char* data[8]; unsigned* flags[8]; int first[9]; };

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

__global__ void pack(const bf16* masks, const bf16* scores, char* to, int64_t bits_at, int64_t scores_at,
                     int objects, int64_t pixels) {
  bf16* copy = reinterpret_cast<bf16*>(to);
  unsigned* bits = reinterpret_cast<unsigned*>(to + bits_at);
  const int64_t words = (pixels + 31) / 32, lane = threadIdx.x % 32;
  const int64_t warps = (int64_t)gridDim.x * blockDim.x / 32;
  for (int64_t w = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; w < objects * words; w += warps) {
    const int64_t object = w / words, pixel = w % words * 32 + lane;
    bool inside = false;
    if (pixel < pixels) {
      const bf16 value = masks[object * pixels + pixel];
      copy[object * pixels + pixel] = value;
      inside = __bfloat162float(value) > 0.0f;
    }
    const unsigned word = __ballot_sync(0xffffffffu, inside);
    if (lane == 0) bits[w] = word;
  }
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < objects;
       i += (int64_t)gridDim.x * blockDim.x)
    reinterpret_cast<bf16*>(to + scores_at)[i] = scores[i];
}

__device__ int owner_of(const Peers& peers, int object) {
  int rank = 0;
  while (object >= peers.first[rank + 1]) ++rank;
  return rank;
}

__global__ void pull_bits(Peers peers, unsigned* bits, float* scores, int64_t bits_at, int64_t scores_at, int total,
                          int64_t words, int me, int world, unsigned seq) {
  meet(peers, me, world, seq);
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < total * words;
       i += (int64_t)gridDim.x * blockDim.x) {
    const int object = (int)(i / words), rank = owner_of(peers, object);
    const unsigned* from = reinterpret_cast<const unsigned*>(peers.data[rank] + bits_at);
    bits[i] = from[(object - peers.first[rank]) * words + i % words];
  }
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const int rank = owner_of(peers, i);
    scores[i] = __bfloat162float(reinterpret_cast<const bf16*>(peers.data[rank] + scores_at)[i - peers.first[rank]]);
  }
}

__device__ int warp_sum(int value) { return __reduce_add_sync(0xffffffffu, value); }

// One warp per pair (i, j) with i fixed per block: common and united pixels from 32-pixel words.
__global__ void judge(const unsigned* bits, const int64_t* last, bool* suppressed, int total, int64_t words,
                      float threshold, bool reverse) {
  __shared__ int found;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int i = blockIdx.x; i < total; i += gridDim.x) {
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    for (int j = warp; j < total; j += warps) {
      const bool later = reverse ? last[i] < last[j] : last[i] > last[j];
      if (j == i || !later || last[j] < 0) continue;
      int common = 0, united = 0;
      for (int64_t w = lane; w < words; w += 32) {
        const unsigned a = bits[i * words + w], b = bits[j * words + w];
        common += __popc(a & b);
        united += __popc(a | b);
      }
      common = warp_sum(common);
      united = warp_sum(united);
      if (lane == 0 && (float)common / fmaxf((float)united, 1.0f) >= threshold) atomicOr(&found, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) suppressed[i] = found != 0;
    __syncthreads();
  }
}

// Surviving masks, widened; the meeting at the end lets nobody overwrite what a peer still reads.
__global__ void finish(Peers peers, const bool* suppressed, float* out, int total, int64_t pixels, int me, int world,
                       unsigned seq) {
  const bool wide = pixels % 8 == 0;
  const int64_t units = wide ? pixels / 8 : pixels;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < total * units;
       i += (int64_t)gridDim.x * blockDim.x) {
    const int object = (int)(i / units), rank = owner_of(peers, object);
    const int64_t own = (object - peers.first[rank]) * units + i % units;
    const bool gone = suppressed[object];
    if (wide) {
      const uint4 packed = gone ? uint4{} : reinterpret_cast<const uint4*>(peers.data[rank])[own];
      const bf16* eight = reinterpret_cast<const bf16*>(&packed);
      float values[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) values[k] = gone ? -10.0f : __bfloat162float(eight[k]);
      float4* to = reinterpret_cast<float4*>(out) + 2 * i;
      to[0] = make_float4(values[0], values[1], values[2], values[3]);
      to[1] = make_float4(values[4], values[5], values[6], values[7]);
    } else {
      out[i] = gone ? -10.0f : __bfloat162float(reinterpret_cast<const bf16*>(peers.data[rank])[own]);
    }
  }
  meet(peers, me, world, seq);
}

void suppress(std::vector<int64_t> data, std::vector<int64_t> flags, std::vector<int> counts, int64_t masks,
              int64_t scores, int64_t bits_at, int64_t scores_at, int64_t pixels, int64_t last, double threshold,
              bool reverse, int64_t bits, int64_t out, int64_t out_scores, int64_t out_flags, int me, int64_t seq,
              int blocks, int64_t stream) {
  Peers peers{};
  const int world = (int)data.size();
  for (int r = 0; r < world; ++r) {
    peers.data[r] = reinterpret_cast<char*>(data[r]);
    peers.flags[r] = reinterpret_cast<unsigned*>(flags[r]);
    peers.first[r + 1] = peers.first[r] + counts[r];
  }
  const int total = peers.first[world];
  const int64_t words = (pixels + 31) / 32;
  auto s = reinterpret_cast<cudaStream_t>(stream);
  auto* packed = reinterpret_cast<unsigned*>(bits);
  auto* gone = reinterpret_cast<bool*>(out_flags);
  const auto n = (unsigned)seq;
  pack<<<4 * blocks, 256, 0, s>>>(reinterpret_cast<const bf16*>(masks), reinterpret_cast<const bf16*>(scores),
                                  peers.data[me], bits_at, scores_at, counts[me], pixels);
  pull_bits<<<blocks, 256, 0, s>>>(peers, packed, reinterpret_cast<float*>(out_scores), bits_at, scores_at, total,
                                   words, me, world, n);
  judge<<<4 * blocks, 256, 0, s>>>(packed, reinterpret_cast<const int64_t*>(last), gone, total, words,
                                   (float)threshold, reverse);
  finish<<<blocks, 256, 0, s>>>(peers, gone, reinterpret_cast<float*>(out), total, pixels, me, world, n + 1);
  if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("suppress", &suppress); }
"""

_ext = load_inline(
    name="sam3_iou_bits",
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
    """The symmetric buffer and flags; it grows when a call brings more objects than any before."""

    current: Optional["_State"] = None

    def __init__(self, objects: int, pixels: int, device: torch.device) -> None:
        self.objects, self.pixels = objects, pixels
        self.bits_at = (2 * objects * pixels + 15) // 16 * 16
        self.scores_at = self.bits_at + 4 * objects * ((pixels + 31) // 32)
        nbytes = self.scores_at + 2 * objects
        self.data = symm_mem.empty(nbytes, dtype=torch.uint8, device=device)
        self.data_ptrs = list(symm_mem.rendezvous(self.data, dist.group.WORLD).buffer_ptrs)
        self.blocks = _grid(device)
        self.flags = symm_mem.empty(self.blocks * 8, dtype=torch.int32, device=device).zero_()
        self.flag_ptrs = list(symm_mem.rendezvous(self.flags, dist.group.WORLD).buffer_ptrs)
        self.sequence = 1
        torch.cuda.synchronize()
        dist.barrier()

    @classmethod
    def get(cls, objects: int, pixels: int, device: torch.device) -> "_State":
        kept = cls.current
        if kept is None or kept.objects < objects or kept.pixels != pixels:
            cls.current = kept = cls(max(8, 2 * objects), pixels, device)
        return kept


@torch.no_grad()
def solution(
    low_res_masks_local: torch.Tensor,
    obj_scores_local: torch.Tensor,
    num_obj_per_gpu: List[int],
    last_occluded: torch.Tensor,
    iou_threshold: float = 0.7,
    reverse: bool = False,
    group: Optional[dist.ProcessGroup] = None,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rank = dist.get_rank()
    mine = num_obj_per_gpu[rank]
    if low_res_masks_local.shape[0] != mine or obj_scores_local.shape[0] != mine:
        raise ValueError("the local masks and scores must be num_obj_per_gpu[rank] many")
    masks, own_scores = low_res_masks_local.contiguous(), obj_scores_local.contiguous()
    device, side, pixels = masks.device, masks.shape[1:], masks.shape[1] * masks.shape[2]
    total = sum(num_obj_per_gpu)
    state = _State.get(max(num_obj_per_gpu), pixels, device)
    last = last_occluded.to(device=device, dtype=torch.int64).contiguous()
    bits = torch.empty(total * ((pixels + 31) // 32), dtype=torch.int32, device=device)
    out = torch.empty((total, *side), dtype=torch.float32, device=device)
    scores = torch.empty(total, dtype=torch.float32, device=device)
    suppressed = torch.empty(total, dtype=torch.bool, device=device)
    stream = torch.cuda.current_stream().cuda_stream
    _ext.suppress(
        state.data_ptrs, state.flag_ptrs, list(num_obj_per_gpu), masks.data_ptr(),
        own_scores.data_ptr(), state.bits_at, state.scores_at, pixels, last.data_ptr(),
        iou_threshold, reverse, bits.data_ptr(), out.data_ptr(), scores.data_ptr(), suppressed.data_ptr(), rank,
        state.sequence, state.blocks, stream,
    )  # fmt: skip
    state.sequence += 2
    return out, scores, suppressed

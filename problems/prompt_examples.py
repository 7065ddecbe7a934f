"""Worked answers to another problem, one per backend, for the one-shot prompts. Our own; data, never run here."""

_TASK = """\
Problem of the example: each rank returns relu(mean of `x` over all ranks); `x` is bfloat16, contiguous, of any shape.
"""

_IMPORTS = """\
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
"""

_SOLUTION = """\
_kept = {{}}  # buffers that peers can read, made at the first call of each shape


def solution(x: torch.Tensor) -> torch.Tensor:
    if x.shape not in _kept:
        buffer = symm_mem.empty(x.shape, dtype=x.dtype, device=x.device)
        _kept[x.shape] = buffer, symm_mem.rendezvous(buffer, dist.group.WORLD)
    buffer, peers = _kept[x.shape]
    buffer.copy_(x)
    peers.barrier(channel=0)  # the values of every rank are in place
    out = torch.empty_like(x)
    {launch}
    peers.barrier(channel=1)  # nobody overwrites a buffer that a peer still reads
    return out
"""

_CUDA = (
    _IMPORTS
    + '''\
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/cuda/CUDAContext.h>
#include <cuda_bf16.h>

__global__ void mean_relu(const __nv_bfloat16* const* peers, __nv_bfloat16* out, int world, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    float sum = 0.f;
    for (int r = 0; r < world; ++r) sum += __bfloat162float(peers[r][i]);
    out[i] = __float2bfloat16(fmaxf(sum / world, 0.f));
}

void launch(int64_t peers, torch::Tensor out, int64_t world) {
    int64_t n = out.numel();
    mean_relu<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const __nv_bfloat16* const*>(peers),
        reinterpret_cast<__nv_bfloat16*>(out.data_ptr()), int(world), n);
}
"""
kernels = load_inline(
    name="example_mean_relu",
    cpp_sources="void launch(int64_t peers, torch::Tensor out, int64_t world);",
    cuda_sources=SOURCE,
    functions=["launch"],
)
'''
    + _SOLUTION.format(launch="kernels.launch(peers.buffer_ptrs_dev, out, peers.world_size)")
)

_TRITON = (
    _IMPORTS
    + """\
import triton
import triton.language as tl


@triton.jit
def mean_relu(peers, out, n, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    table = peers.to(tl.pointer_type(tl.uint64))
    total = tl.zeros((BLOCK,), tl.float32)
    for r in tl.static_range(WORLD):
        peer = tl.load(table + r).to(tl.pointer_type(tl.bfloat16))
        total += tl.load(peer + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, tl.maximum(total / WORLD, 0.0).to(tl.bfloat16), mask=inside)


"""
    + _SOLUTION.format(
        launch="mean_relu[(triton.cdiv(x.numel(), 1024),)](\n"
        "        peers.buffer_ptrs_dev, out, x.numel(), WORLD=peers.world_size, BLOCK=1024\n    )"
    )
)

_CPP = """\
import torch
import torch.distributed as dist


def solution(x: torch.Tensor) -> torch.Tensor:
    total = x.clone()
    work = dist.all_reduce(total, async_op=True)  # returns at once; the sum is on its way
    scale = 1.0 / dist.get_world_size()           # host work fits in the meantime
    work.wait()
    return total.mul_(scale).relu_()
"""

SOURCES = {"cuda": _CUDA, "triton": _TRITON, "cpp": _CPP}
EXAMPLES = {name: f"{_TASK}\n```python\n{source}```" for name, source in SOURCES.items()}

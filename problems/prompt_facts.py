"""What every prompt says about the judge and about what a file can import. Free of Django."""

from collections.abc import Mapping
from typing import Any

_SYMMETRIC = """\
- `import torch.distributed._symmetric_memory as symm_mem`: `buffer = symm_mem.empty(shape, dtype=..., device=...)`,
  then on all ranks `handle = symm_mem.rendezvous(buffer, dist.group.WORLD)`. `handle.buffer_ptrs` (ints) and
  `handle.buffer_ptrs_dev` (an array on the device) hold every rank's address, `handle.signal_pad_ptrs_dev` the
  addresses of the flags, `handle.multicast_ptr` the multicast address (0 where there is none);
  `handle.get_buffer(rank, shape, dtype)` is a peer's memory as a tensor, `handle.barrier(channel=0)` a barrier on the
  stream. Make buffers once and keep them by shape."""

HELPERS = {
    "cuda": """\
- PyTorch with torch.distributed, NumPy and the standard library.
- `torch.utils.cpp_extension.load_inline`, or `from utils.cuda_helpers import compile_cuda_extension`:
  `compile_cuda_extension(name, cuda_src, extra_cuda_cflags=None, extra_include_paths=None, extra_ldflags=None)`
  builds one CUDA source that carries its own `PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)` block, with -O3 for the
  architecture above, and returns the module. Ranks share one build.
"""
    + _SYMMETRIC,
    "triton": """\
- PyTorch with torch.distributed, Triton, NumPy and the standard library.
- `from utils.triton_utils import ...`, device functions: `get_tid()` and `get_ntid()` (x, y, z), `get_flat_tid()`,
  `get_flat_bid()`, `sync_threads()`; `send_signal(addrs, sem)` sets flags 0 to 1 and `wait_signal(addrs, sem)` 1 to 0,
  by compare-and-swap at system scope; `blockwise_barrier(signal_pad_ptrs, block_id, rank, world_size, sem)` waits for
  the same block of all ranks through the signal pads.
"""
    + _SYMMETRIC,
    "cpp": """\
- PyTorch with torch.distributed, NumPy and the standard library.
- `torch.utils.cpp_extension.load_inline` for C++ (g++, no CUDA).""",
}


def judging(hardware: Mapping[str, Any]) -> str:
    """How a verdict and a score come about, in a few sentences."""
    timed = (
        "Then reference and file take turns, again on new values at every call, and every answer is compared. "
        "The score is the reference's time over yours; warm-up comes first, so compiling and one-time set-up do not "
        "count."
    )
    if hardware.get("timed") is False:
        timed = "No times are measured here: the answer is a verdict."
    return (
        "Five draws of secret values come first: on every rank every output is compared with the exact answer "
        f"(computed in float64 where it is not exact by itself). {timed} "
        f"All {hardware['ranks']} ranks run on one machine. The inputs of a call exist only from its start, so nothing "
        "can be computed ahead; buffers, compiled code and process groups may be kept between calls. No network, and "
        "only temporary files."
    )


def comparison(output: Mapping[str, Any]) -> str:
    """The sentence about how one output (or argument changed in place) is compared."""
    if output.get("checked_by") == "validity":
        return "Any valid answer is accepted."
    rule = output.get("tolerance") or {}
    if rule.get("exact") or not rule:
        return "Compared bit for bit."
    terms = []
    if rule.get("atol"):
        terms.append(f"{rule['atol']:g}")
    if rule.get("atol_rms"):
        terms.append(f"{rule['atol_rms']:g} * RMS(expected)")
    if rule.get("rtol"):
        terms.append(f"{rule['rtol']:g} * |expected|")
    text = f"Accepted within {' + '.join(terms)}"
    if rule.get("outliers"):
        factor = rule.get("outlier_factor", 10)
        text += f", {100 * rule['outliers']:g} % of the elements within {factor:g} times that"
    if rule.get("nonfinite") == "match":
        text += "; infinities must stand where they belong"
    return f"{text}."

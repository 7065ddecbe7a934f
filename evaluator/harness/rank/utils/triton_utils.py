"""Triton device functions for symmetric-memory kernels: thread indices, signals, a barrier by block.

Cards only. Without Triton the import still works, for files that take another way on a CPU, and a call
says what is missing. Signals are 32-bit flags that go 0 → 1 by `send_signal` and
1 → 0 by `wait_signal`, both by compare-and-swap at system scope.
"""

from typing import Any

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:

    class _Absent:
        """Stands for Triton where it is not installed: takes annotations and decorates, but runs nothing."""

        constexpr = None

        @staticmethod
        def jit(function: Any) -> Any:
            def refuse(*args: Any, **kwargs: Any) -> Any:
                raise RuntimeError(f"{function.__name__} needs a CUDA build: this target has no Triton")

            return refuse

    triton = tl = _Absent


@triton.jit
def get_tid():
    """The thread index in its block: x, y, z."""
    return tl.inline_asm_elementwise(
        """
        mov.u32 $0, %tid.x;
        mov.u32 $1, %tid.y;
        mov.u32 $2, %tid.z;
        """,
        "=r,=r,=r",
        [],
        dtype=(tl.uint32, tl.uint32, tl.uint32),
        is_pure=True,
        pack=1,
    )


@triton.jit
def get_ntid():
    """The block's size in threads: x, y, z."""
    return tl.inline_asm_elementwise(
        """
        mov.u32 $0, %ntid.x;
        mov.u32 $1, %ntid.y;
        mov.u32 $2, %ntid.z;
        """,
        "=r,=r,=r",
        [],
        dtype=(tl.uint32, tl.uint32, tl.uint32),
        is_pure=True,
        pack=1,
    )


@triton.jit
def get_flat_tid():
    """The thread index in its block as one number."""
    x, y, z = get_tid()
    width, height, _ = get_ntid()
    return (z * height + y) * width + x


@triton.jit
def get_flat_bid():
    """The block index in its grid as one number."""
    row = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    return row * tl.num_programs(0) + tl.program_id(0)


@triton.jit
def sync_threads():
    """Wait for all threads of the block."""
    tl.inline_asm_elementwise("bar.sync 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def _swap_until(addrs, expected: tl.constexpr, value: tl.constexpr, sem: tl.constexpr):
    tl.inline_asm_elementwise(
        f"""
        {{
            .reg .u32 %seen;
            .reg .pred %again;
            retry:
                atom.global.{sem}.sys.cas.b32 %seen, [$1], {expected}, {value};
                setp.ne.u32 %again, %seen, {expected};
                @%again bra retry;
        }}
        """,
        "=r, l",
        [addrs],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def send_signal(addrs, sem: tl.constexpr):
    """Set the flags at `addrs` from 0 to 1, waiting until each is 0; `sem` is release or relaxed."""
    _swap_until(addrs, 0, 1, sem)


@triton.jit
def wait_signal(addrs, sem: tl.constexpr):
    """Take the flags at `addrs` from 1 to 0, waiting until each is 1; `sem` is acquire or relaxed."""
    _swap_until(addrs, 1, 0, sem)


@triton.jit
def blockwise_barrier(
    signal_pad_ptrs, block_id, rank: tl.constexpr, world_size: tl.constexpr, sem: tl.constexpr
):
    """Wait for the same block on all ranks, through the signal pads of a symmetric allocation.

    `sem`: relaxed (order of execution only) or acq_rel (earlier writes are visible afterwards).
    """
    if block_id is None:
        block_id = get_flat_bid()
    thread = get_flat_tid()
    pads = signal_pad_ptrs.to(tl.pointer_type(tl.uint64))
    if thread < world_size:
        theirs = tl.load(pads + thread).to(tl.pointer_type(tl.uint32)) + block_id * world_size + rank
        mine = tl.load(pads + rank).to(tl.pointer_type(tl.uint32)) + block_id * world_size + thread
        if sem == "relaxed":
            send_signal(theirs, "relaxed")
            wait_signal(mine, "relaxed")
        else:
            send_signal(theirs, "release")
            wait_signal(mine, "acquire")

"""Make gloo accept what NCCL accepts, so that one file runs on CPU and on cards.

NCCL takes a stacked output of `all_gather_into_tensor` (any shape of the right size) and lists of
unequal sizes in `all_gather` and `all_to_all`; gloo takes neither. The results are those of NCCL.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

_gather_flat = dist.all_gather_into_tensor
_gather_list = dist.all_gather


def all_gather_into_tensor(
    output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """As torch's, for any output shape with `world size × input` elements."""
    same_layout = output_tensor.is_contiguous() and input_tensor.is_contiguous()
    if not same_layout or output_tensor.numel() != input_tensor.numel() * dist.get_world_size(group):
        return _gather_flat(output_tensor, input_tensor, group, async_op)
    return _gather_flat(output_tensor.view(-1), input_tensor.reshape(-1), group, async_op)


def all_gather(
    tensor_list: list[torch.Tensor], tensor: torch.Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """As torch's, also for tensors whose sizes differ between ranks (padded to the largest)."""
    sizes = [item.numel() for item in tensor_list]
    if len(set(sizes)) <= 1:
        return _gather_list(tensor_list, tensor, group, async_op)
    longest = max(sizes)
    padded = tensor.new_zeros(longest)
    padded[: tensor.numel()] = tensor.reshape(-1)
    boxes = [torch.empty_like(padded) for _ in sizes]
    _gather_list(boxes, padded, group)
    for item, box in zip(tensor_list, boxes, strict=True):
        item.copy_(box[: item.numel()].view(item.shape))
    return _Done() if async_op else None


def all_to_all(
    output_tensor_list: list[torch.Tensor],
    input_tensor_list: list[torch.Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As torch's, also for lists of unequal sizes: always one exchange of flat pieces.

    Sizes may be equal on one rank and unequal on another, so no rank may choose by its own sizes.
    """
    sent = torch.cat([item.reshape(-1) for item in input_tensor_list])
    receive = [item.numel() for item in output_tensor_list]
    landed = torch.empty(sum(receive), dtype=sent.dtype, device=sent.device)
    work = dist.all_to_all_single(
        landed, sent, receive, [item.numel() for item in input_tensor_list], group=group, async_op=True
    )
    landing = _Landing(work, output_tensor_list, list(torch.split(landed, receive)))
    if async_op:
        return landing
    landing.wait()
    return None


class _Landing:
    """A running exchange; its outputs are filled when somebody waits for it."""

    def __init__(self, work: Any, outputs: list[torch.Tensor], pieces: list[torch.Tensor]) -> None:
        self.work, self.outputs, self.pieces = work, outputs, pieces

    def wait(self, timeout: Any = None) -> bool:
        if self.work is not None:
            self.work.wait()
        with torch.no_grad():
            for item, piece in zip(self.outputs, self.pieces, strict=True):
                item.copy_(piece.view(item.shape))
        return True

    def is_completed(self) -> bool:
        return self.work is None or bool(self.work.is_completed())


class _Done:
    """A finished work handle."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def install() -> None:
    """Put these forms in place of torch's, everywhere they are looked up."""
    from torch.distributed import distributed_c10d

    modules: tuple[Any, ...] = (dist, distributed_c10d)
    for module in modules:
        module.all_gather_into_tensor = all_gather_into_tensor
        module.all_gather = all_gather
        module.all_to_all = all_to_all
        module._all_gather_base = all_gather_into_tensor

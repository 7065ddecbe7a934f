from typing import List, Optional, Tuple

import torch
import torch.distributed as dist

NO_OBJECT = -10.0


def _gather(mine: torch.Tensor, counts: List[int], group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """All ranks' rows in rank order; ranks hold different numbers of them."""
    boxes = [mine.new_empty((count, *mine.shape[1:])) for count in counts]
    dist.all_gather(boxes, mine.contiguous(), group=group)
    return torch.cat(boxes)


def _suppressed(masks: torch.Tensor, last: torch.Tensor, threshold: float, reverse: bool) -> torch.Tensor:
    """Which objects lie over another one and were occluded more recently."""
    flat = (masks > 0).flatten(1).to(torch.float32)
    common = flat @ flat.t()
    area = flat.sum(dim=1)
    union = area.unsqueeze(1) + area.unsqueeze(0) - common
    overlap = torch.triu(common / union.clamp(min=1.0) >= threshold, diagonal=1)
    last_i, last_j = last.unsqueeze(1), last.unsqueeze(0)
    i_later = last_i < last_j if reverse else last_i > last_j
    j_later = last_j < last_i if reverse else last_j > last_i
    first = overlap & i_later & (last_j > -1)
    second = overlap & j_later & (last_i > -1)
    return first.any(dim=1) | second.any(dim=0)


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
    mine = num_obj_per_gpu[dist.get_rank(group)]
    if low_res_masks_local.shape[0] != mine or obj_scores_local.shape[0] != mine:
        raise ValueError("the local masks and scores must be num_obj_per_gpu[rank] many")
    masks = _gather(low_res_masks_local.to(torch.float32), num_obj_per_gpu, group)
    scores = _gather(obj_scores_local.to(torch.float32), num_obj_per_gpu, group)
    if masks.shape[0] <= 1:
        return masks, scores, torch.zeros(masks.shape[0], dtype=torch.bool, device=masks.device)
    last = last_occluded.to(device=masks.device, dtype=torch.int64)
    suppressed = _suppressed(masks, last, iou_threshold, reverse)
    masks = torch.where(suppressed[:, None, None], torch.full_like(masks, NO_OBJECT), masks)
    return masks, scores, suppressed

from typing import List, Optional

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    local_tensor: torch.Tensor,
    input_split_sizes: Optional[List[int]] = None,
    output_split_sizes: Optional[List[int]] = None,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    sent = local_tensor.contiguous()
    if dist.get_world_size(group) == 1:
        return sent
    if output_split_sizes is None:
        out = torch.empty_like(sent)
    else:
        rows = sum(output_split_sizes)
        out = torch.empty((rows, *sent.shape[1:]), dtype=sent.dtype, device=sent.device)
    dist.all_to_all_single(
        out,
        sent,
        output_split_sizes=output_split_sizes,
        input_split_sizes=input_split_sizes,
        group=group,
    )
    return out

from typing import Optional, Tuple, Union

import torch
import torch.distributed as dist


def _mean(values: torch.Tensor, mask: Optional[torch.Tensor]) -> torch.Tensor:
    """Mean over rows; with a mask (one entry per row), over the rows that it keeps."""
    if mask is None:
        return values.mean(dim=0)
    weights = mask.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
    return (values * weights).sum(dim=0) / weights.sum(dim=0)


@torch.no_grad()
def solution(
    gate_logits: Union[torch.Tensor, Tuple[torch.Tensor, ...]],
    num_experts: int,
    top_k: int = 2,
    attention_mask: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    if isinstance(gate_logits, (tuple, list)):
        gate_logits = torch.cat([layer.to(gate_logits[0].device) for layer in gate_logits], dim=0)

    probabilities = torch.softmax(gate_logits, dim=-1)
    _, selected = torch.topk(probabilities, top_k, dim=-1)
    chosen = torch.nn.functional.one_hot(selected, num_experts).to(torch.float32)

    mask = None
    if attention_mask is not None:
        layers = gate_logits.shape[0] // attention_mask.numel()
        mask = attention_mask.reshape(-1).repeat(layers)
    tokens_per_expert = _mean(chosen, mask)
    router_share = _mean(probabilities, mask)
    loss = num_experts * (tokens_per_expert * router_share.unsqueeze(0)).sum()

    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(loss, op=dist.ReduceOp.SUM)
        loss = loss / dist.get_world_size()
    return loss

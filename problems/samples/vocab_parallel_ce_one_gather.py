"""Vocabulary-parallel cross entropy with one collective instead of three: correct, and faster.

The reference meets three times: for the maximum, for the target's logit and for the sum. But sums of
exponentials can be joined afterwards, whatever maximum each rank used: with m the largest of the local
maxima m_r, the whole sum is the sum of s_r * exp(m_r - m). So each rank packs three numbers per token
(its maximum, its sum, the target's logit or -inf) and one gather is enough.
"""

from typing import Optional

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    width = vocab_parallel_logits.shape[-1]
    x = vocab_parallel_logits.to(torch.float32).view(-1, width)
    tokens = x.shape[0]

    mine = x.new_empty(3, tokens)
    torch.amax(x, dim=-1, out=mine[0])
    torch.sum((x - mine[0].unsqueeze(-1)).exp_(), dim=-1, out=mine[1])
    local = target.reshape(-1) - rank * width
    owned = (local >= 0) & (local < width)
    picked = x.gather(-1, local.clamp(0, width - 1).unsqueeze(-1)).squeeze(-1)
    mine[2] = picked.masked_fill_(~owned, float("-inf"))

    parts = mine.new_empty(world * mine.numel())
    dist.all_gather_into_tensor(parts, mine.view(-1), group=group)
    maxima, sums, logits = parts.view(world, 3, tokens).unbind(dim=1)

    maximum = maxima.amax(dim=0)
    total = (sums * (maxima - maximum).exp_()).sum(dim=0)
    logit = logits.amax(dim=0)
    logit = torch.where(torch.isneginf(logit), 0.0, logit - maximum)
    return (total.log_() - logit).to(vocab_parallel_logits.dtype).view(target.shape)

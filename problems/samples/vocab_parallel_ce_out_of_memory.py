"""Uses far more memory than the job may have: out of memory.

To pick the target's logit, the file builds a table for every pair of ids in a vocabulary of 24576,
over two gigabytes on each of the four ranks, where an index would do. The kernel ends the job at its limit,
or refuses the memory where it can't count a whole job's; no other job notices.
"""

from typing import Optional

import torch
import torch.distributed as dist

VOCABULARY = 24576


@torch.no_grad()
def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    table = target.new_ones(VOCABULARY, VOCABULARY, dtype=torch.float32)
    width = vocab_parallel_logits.shape[-1]
    local = (target - dist.get_rank(group) * width).clamp(0, width - 1)
    weights = table[local.reshape(-1), :width].view(*target.shape, width)
    loss = torch.logsumexp(vocab_parallel_logits.float() * weights, dim=-1)
    dist.all_reduce(loss, group=group)
    return loss.to(vocab_parallel_logits.dtype)

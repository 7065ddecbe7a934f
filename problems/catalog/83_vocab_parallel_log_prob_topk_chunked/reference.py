from typing import Optional

import torch
import torch.distributed as dist


def _filter(rows: torch.Tensor, top_k: Optional[int], top_p: float) -> torch.Tensor:
    """The rows with everything that top-k and top-p remove set to -inf."""
    vocabulary = rows.shape[-1]
    use_k = top_k is not None and top_k > 0
    k = min(top_k, vocabulary) if use_k else vocabulary
    if top_p >= 1.0:
        if not use_k:
            return rows
        threshold = torch.topk(rows, k, dim=-1).values[..., -1:]
        return rows.masked_fill(rows < threshold, float("-inf"))
    ordered, order = torch.sort(rows, dim=-1)
    if use_k:
        threshold = ordered[..., vocabulary - k : vocabulary - k + 1]
        ordered = ordered.masked_fill(ordered < threshold, float("-inf"))
    held = torch.cumsum(torch.softmax(ordered, dim=-1), dim=-1)
    removed = held <= 1.0 - top_p
    removed[..., -1] = False
    ordered = ordered.masked_fill(removed, float("-inf"))
    return torch.empty_like(rows).scatter_(-1, order, ordered)


def _to_tokens(part: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """(t, V/W) of this rank's vocabulary to (t/W, V) of this rank's tokens."""
    world = dist.get_world_size(group)
    tokens, width = part.shape
    send = part.contiguous().view(world, tokens // world, width)
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send, group=group)
    return received.transpose(0, 1).reshape(tokens // world, world * width)


def _chunk(
    part: torch.Tensor,
    ids: torch.Tensor,
    top_k: Optional[int],
    top_p: float,
    group: Optional[dist.ProcessGroup],
) -> torch.Tensor:
    """Log-probabilities of this rank's share of one chunk of tokens."""
    rows = _filter(_to_tokens(part, group), top_k, top_p)
    mine = rows.shape[0]
    ids = ids[dist.get_rank(group) * mine :][:mine]
    scores = torch.log_softmax(rows.to(torch.float32), dim=-1)
    return scores.gather(-1, ids.unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    tp_group: Optional[dist.ProcessGroup] = None,
    top_k: Optional[int] = None,
    top_p: float = 1.0,
    chunk_size: int = 1,
) -> torch.Tensor:
    world, tokens = dist.get_world_size(tp_group), target.numel()
    step = target.shape[0] * max(1, chunk_size)
    if tokens % world or step % world:
        raise ValueError(f"{tokens} tokens in chunks of {step} cannot be shared by {world} ranks")
    logits, ids = vocab_parallel_logits.reshape(tokens, -1), target.reshape(-1)
    chunks = []
    for start in range(0, tokens, step):
        scores = _chunk(logits[start : start + step], ids[start : start + step], top_k, top_p, tp_group)
        parts = [torch.empty_like(scores) for _ in range(world)]
        dist.all_gather(parts, scores, group=tp_group)
        chunks.extend(parts)
    return torch.cat(chunks).view(target.shape)

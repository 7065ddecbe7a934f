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


def _to_vocabulary(rows: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """(t/W, V) of this rank's tokens to (t, V/W) of this rank's vocabulary."""
    world = dist.get_world_size(group)
    mine, vocabulary = rows.shape
    send = rows.view(mine, world, vocabulary // world).transpose(0, 1).contiguous()
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send, group=group)
    return received.view(world * mine, vocabulary // world)


def _gradient(
    rows: torch.Tensor, ids: torch.Tensor, grad: torch.Tensor, top_k: Optional[int], top_p: float
) -> torch.Tensor:
    """fp32 gradient of the log-probabilities at `ids` with respect to whole rows of logits."""
    filtered = _filter(rows, top_k, top_p).to(torch.float32)
    kept = torch.isfinite(filtered)
    result = -torch.softmax(filtered, dim=-1)
    result.scatter_add_(-1, ids.unsqueeze(-1), torch.ones_like(result[:, :1]))
    return result * grad.to(torch.float32).unsqueeze(-1) * kept


@torch.no_grad()
def solution(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    grad_output: torch.Tensor,
    tp_group: Optional[dist.ProcessGroup] = None,
    top_k: Optional[int] = None,
    top_p: float = 1.0,
    chunk_size: int = 1,
) -> torch.Tensor:
    rank, world = dist.get_rank(tp_group), dist.get_world_size(tp_group)
    tokens = target.numel()
    step = target.shape[0] * max(1, chunk_size)
    if tokens % world or step % world:
        raise ValueError(f"{tokens} tokens in chunks of {step} cannot be shared by {world} ranks")
    logits = vocab_parallel_logits.reshape(tokens, -1)
    ids, grads = target.reshape(-1), grad_output.reshape(-1)
    chunks = []
    for start in range(0, tokens, step):
        rows = _to_tokens(logits[start : start + step], tp_group)
        mine = slice(start + rank * rows.shape[0], start + (rank + 1) * rows.shape[0])
        rows = _gradient(rows, ids[mine], grads[mine], top_k, top_p)
        chunks.append(_to_vocabulary(rows, tp_group))
    return torch.cat(chunks).view(vocab_parallel_logits.shape)

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(vocab_parallel_logits, target, tp_group=None, top_k=None, top_p=1.0):
    W, r = dist.get_world_size(tp_group), dist.get_rank(tp_group)
    B, S, v = vocab_parallel_logits.shape
    T = B * S
    parts = [torch.empty_like(vocab_parallel_logits) for _ in range(W)]
    dist.all_gather(parts, vocab_parallel_logits.contiguous(), group=tp_group)
    x = torch.cat(parts, dim=-1).view(T, -1).float()
    V = x.shape[1]
    if top_k is not None and top_k > 0:
        kth = x.topk(min(top_k, V), dim=-1).values[:, -1:]
        x = x.masked_fill(x < kth, float("-inf"))
    if top_p < 1.0:
        vals, idx = x.sort(dim=-1, descending=True)
        probs = vals.softmax(-1)
        before = probs.cumsum(-1) - probs
        drop = before >= top_p
        drop[:, 0] = False
        x = x.masked_fill(torch.zeros_like(drop).scatter(1, idx, drop), float("-inf"))
    return x.log_softmax(-1).gather(1, target.view(-1, 1)).view(B, S)

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


@torch.no_grad()
def solution(vocab_parallel_logits, target, group=None):
    pg = group if group is not None else dist.group.WORLD
    r = dist.get_rank(pg)
    x = vocab_parallel_logits.float()
    v = x.shape[-1]
    m = x.amax(-1)
    dist.all_reduce(m, op=dist.ReduceOp.MAX, group=pg)
    e = (x - m.unsqueeze(-1)).exp().sum(-1)
    local = target - r * v
    ok = (local >= 0) & (local < v)
    t = torch.where(ok, x.gather(-1, local.clamp(0, v - 1).unsqueeze(-1)).squeeze(-1) - m, torch.zeros_like(m))
    both = funcol.all_reduce(torch.stack([e, t]), "sum", pg)
    both = funcol.wait_tensor(both)
    return (both[0].log() - both[1]).to(vocab_parallel_logits.dtype)

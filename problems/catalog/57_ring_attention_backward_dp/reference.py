from typing import List, Optional, Tuple

import torch
import torch.distributed as dist


def _shift(tensors: List[torch.Tensor], group: dist.ProcessGroup) -> List[torch.Tensor]:
    """Pass the tensors on to the next rank of the ring; returns what the one before had."""
    size, me = dist.get_world_size(group), dist.get_rank(group)
    after = dist.get_global_rank(group, (me + 1) % size)
    before = dist.get_global_rank(group, (me - 1) % size)
    received = [torch.empty_like(tensor) for tensor in tensors]
    ops = [dist.P2POp(dist.isend, tensor, after, group=group) for tensor in tensors]
    ops += [dist.P2POp(dist.irecv, tensor, before, group=group) for tensor in received]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return received


def _pair(
    chunk: Tuple[torch.Tensor, ...], k: torch.Tensor, v: torch.Tensor, scale: float, masked: bool
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What one pair of query and key chunks adds to dq, dk and dv; all (B, h, S, d), fp32."""
    dout, q, delta, lse = chunk
    k, v = (part.transpose(1, 2).to(torch.float32) for part in (k, v))
    p = torch.exp(torch.matmul(q, k.transpose(-2, -1)) * scale - lse)
    if masked:
        p = p.tril()
    ds = p * (torch.matmul(dout, v.transpose(-2, -1)) - delta) * scale
    dk, dv = torch.matmul(ds.transpose(-2, -1), q), torch.matmul(p.transpose(-2, -1), dout)
    return torch.matmul(ds, k), dk, dv


def _average(grad: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    if group is not None and dist.get_world_size(group) > 1:
        dist.all_reduce(grad, op=dist.ReduceOp.SUM, group=group)
        grad = grad / dist.get_world_size(group)
    return grad


@torch.no_grad()
def solution(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    softmax_lse: torch.Tensor,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    cp_group: Optional[dist.ProcessGroup] = None,
    dp_group: Optional[dist.ProcessGroup] = None,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    cp_group = dist.group.WORLD if cp_group is None else cp_group
    size, me = dist.get_world_size(cp_group), dist.get_rank(cp_group)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    dout32, q32, out32 = (part.transpose(1, 2).to(torch.float32) for part in (dout, q, out))
    delta = (dout32 * out32).sum(dim=-1, keepdim=True)
    chunk = (dout32, q32, delta, softmax_lse.unsqueeze(-1))

    k, v = k.contiguous(), v.contiguous()
    dq, dk, dv = (torch.zeros(q32.shape, dtype=torch.float32, device=q.device) for _ in range(3))
    for step in range(size):
        if step > 0:
            k, v = _shift([k, v], cp_group)
            dk, dv = _shift([dk, dv], cp_group)
        if not (causal and step > me):
            terms = _pair(chunk, k, v, scale, causal and step == 0)
            dq, dk, dv = dq + terms[0], dk + terms[1], dv + terms[2]
    if size > 1:
        dk, dv = _shift([dk, dv], cp_group)
    grads = [grad.transpose(1, 2).to(q.dtype).contiguous() for grad in (dq, dk, dv)]
    return tuple(_average(grad, dp_group) for grad in grads)

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


@torch.no_grad()
def solution(q, k, v, softmax_scale=None, causal=False, group=None):
    pg = group or dist.group.WORLD
    W, r = dist.get_world_size(pg), dist.get_rank(pg)
    B, S, h, d = q.shape
    kv = torch.stack([k, v])
    out = torch.empty((W, *kv.shape), dtype=kv.dtype, device=kv.device)
    dist.all_gather_into_tensor(out, kv, group=pg)
    K, V = (out[:, i].permute(1, 0, 2, 3, 4).reshape(B, W * S, h, d).transpose(1, 2) for i in (0, 1))
    mask = None
    if causal:
        pos = torch.arange(W * S, device=q.device)
        mask = pos[None, :] <= (r * S + torch.arange(S, device=q.device))[:, None]
    o = F.scaled_dot_product_attention(q.transpose(1, 2), K, V, attn_mask=mask, scale=softmax_scale)
    return o.transpose(1, 2).contiguous()

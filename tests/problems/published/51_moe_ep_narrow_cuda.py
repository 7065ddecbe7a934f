import torch
import torch.distributed as dist
import torch.nn.functional as F

_GROUPS = {}


def _group(E):
    W = dist.get_world_size()
    if E >= W:
        return dist.group.WORLD
    key = (W, E)
    if key not in _GROUPS:
        mine, _ = dist.new_subgroups_by_enumeration([list(range(b, b + E)) for b in range(0, W, E)])
        _GROUPS[key] = mine
    return _GROUPS[key]


def solution(hidden_states, gate_weight, gate_bias, gate_proj, up_proj, down_proj, num_experts, top_k, group=None):
    pg = group if group is not None else _group(num_experts)
    g, r = dist.get_world_size(pg), dist.get_rank(pg)
    x = hidden_states.reshape(-1, hidden_states.shape[-1])
    p = F.linear(x, gate_weight, gate_bias).softmax(-1)
    w, e = p.topk(top_k, -1)
    dense = torch.zeros_like(p).scatter(1, e, w)
    xs = [torch.empty_like(x) for _ in range(g)]
    dist.all_gather(xs, x.contiguous(), group=pg)
    y = torch.stack([down_proj(F.silu(gate_proj(t)) * up_proj(t)) for t in xs])
    back = torch.empty_like(y)
    dist.all_to_all_single(back, y.detach().contiguous(), group=pg)
    return (back.float() * dense.t().float().unsqueeze(-1)).sum(0).to(x.dtype)

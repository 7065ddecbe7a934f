import torch
import torch.distributed as dist
import torch.nn.functional as F


@torch.no_grad()
def solution(x_local, W1_shard, W2_shard, W3_shard, n_tp, n_fsdp):
    rank = dist.get_rank()
    assert dist.get_world_size() == n_tp * n_fsdp
    tp_groups = [dist.new_group([j * n_tp + i for i in range(n_tp)]) for j in range(n_fsdp)]  # every call, as published
    fsdp_groups = [dist.new_group([j * n_tp + i for j in range(n_fsdp)]) for i in range(n_tp)]
    tp, fsdp = tp_groups[rank // n_tp], fsdp_groups[rank % n_tp]

    def gather(t, dim):
        parts = [torch.empty_like(t) for _ in range(n_fsdp)]
        dist.all_gather(parts, t.contiguous(), group=fsdp)
        return torch.cat(parts, dim=dim)

    w1, w2, w3 = gather(W1_shard, 0), gather(W2_shard, 0), gather(W3_shard, 1)
    y = (F.silu(x_local @ w1) * (x_local @ w2)) @ w3
    if n_tp > 1:
        dist.all_reduce(y, group=tp)
    return y

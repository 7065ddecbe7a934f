import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor):
    rank, world = dist.get_rank(), dist.get_world_size()
    out = torch.empty_like(tensor)
    ops = []
    for peer in range(world):  # self included: NCCL batches it
        ops.append(dist.P2POp(dist.isend, tensor[peer], peer))
        ops.append(dist.P2POp(dist.irecv, out[peer], peer))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return out

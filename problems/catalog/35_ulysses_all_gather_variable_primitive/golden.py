import torch


def golden(ranks, size, world, dtype):
    gather_dim = ranks[0][1]
    rows = [row for args in ranks for row in args[0].unbind(gather_dim)]
    joined = torch.stack(rows, dim=gather_dim)
    return [joined for _ in ranks]

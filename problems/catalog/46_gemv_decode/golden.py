import torch


def golden(ranks, size, world, dtype):
    hidden = ranks[0][0].to(dtype)
    weight = torch.cat([args[1] for args in ranks]).to(dtype)
    bias = torch.cat([args[2] for args in ranks]).to(dtype)
    logits = torch.einsum("th,vh->tv", hidden, weight) + bias
    return [logits for _ in ranks]

import torch


def golden(ranks, size, world, dtype):
    logits = torch.cat([x.to(dtype) for x, _, _ in ranks], dim=-1)
    target = ranks[0][1]
    picked = logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    loss = torch.logsumexp(logits, dim=-1) - picked
    return [loss for _ in ranks]

import torch


def golden(ranks, size, world, dtype):
    x = torch.cat([x_local for x_local, _, _ in ranks], dim=1).to(dtype)
    answers = []
    for mine, (_, W1, W2) in zip(x.chunk(world), ranks, strict=True):
        hidden = mine @ W1.to(dtype)
        answers.append((hidden / (1 + torch.exp(-hidden))) @ W2.to(dtype))
    return answers

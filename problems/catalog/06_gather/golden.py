import torch


def golden(ranks, size, world, dtype):
    target = ranks[0][1] if len(ranks[0]) > 1 else 0
    answers = [args[0].clone() for args in ranks]
    answers[target] = torch.cat([args[0][None] for args in ranks])
    return answers

import torch


def golden(ranks, size, world, dtype):
    answers = [[] for _ in ranks]
    for rows, sent, *_ in ranks:
        for destination, block in enumerate(rows.split(sent)):
            answers[destination].append(block)
    return [torch.cat(blocks) for blocks in answers]

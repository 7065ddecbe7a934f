import torch


def golden(ranks, size, world, dtype):
    table = torch.cat([shard for _, shard in ranks])
    rows = ranks[0][1].shape[0]
    answers = []
    for indices, _ in ranks:
        order = torch.sort(torch.div(indices, rows, rounding_mode="floor"), stable=True).indices
        answers.append(table.index_select(0, indices[order]))
    return answers

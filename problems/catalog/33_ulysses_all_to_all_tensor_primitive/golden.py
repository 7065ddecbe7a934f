import torch


def golden(ranks, size, world, dtype):
    _, scatter_dim, gather_dim, _ = ranks[0]
    blocks = torch.stack([x.unflatten(scatter_dim, (world, -1)).movedim(scatter_dim, 0) for x, *_ in ranks])
    # blocks[source, destination, ...]; the source axis becomes the outer part of gather_dim.
    return [
        blocks[:, rank].movedim(0, gather_dim).flatten(gather_dim, gather_dim + 1) for rank in range(world)
    ]

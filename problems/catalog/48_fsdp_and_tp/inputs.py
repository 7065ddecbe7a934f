import torch


def _grid(world):
    """(n_tp, n_fsdp): the smallest tensor-parallel degree that leaves at least two FSDP ranks."""
    for n_tp in range(2, world):
        if world % n_tp == 0 and world // n_tp >= 2:
            return n_tp, world // n_tp
    return 1, world


def _shard(x, w1, w2, w3, world):
    n_tp, n_fsdp = _grid(world)
    ranks = []
    for rank in range(world):
        f, t = divmod(rank, n_tp)
        parts = [
            x.chunk(n_fsdp, 0)[f],
            w1.chunk(n_fsdp, 0)[f].chunk(n_tp, 1)[t],
            w2.chunk(n_fsdp, 0)[f].chunk(n_tp, 1)[t],
            w3.chunk(n_tp, 0)[t].chunk(n_fsdp, 1)[f],
        ]
        ranks.append([*(part.clone(memory_format=torch.contiguous_format) for part in parts), n_tp, n_fsdp])
    return ranks


def build(size, world, draw):
    x = draw.normal((size.B_total, size.D), torch.bfloat16)
    w1 = draw.normal((size.D, size.D_ff), torch.bfloat16, std=draw.number(0.7, 1.2) * size.D**-0.5)
    w2 = draw.normal((size.D, size.D_ff), torch.bfloat16, std=draw.number(0.7, 1.2) * size.D**-0.5)
    w3 = draw.normal((size.D_ff, size.D), torch.bfloat16, std=size.D_ff**-0.5)
    return _shard(x, w1, w2, w3, world)


def upstream(size, world, trial):
    torch.manual_seed(42 + 1000 * 48 + 1000003 * trial)
    shapes = [(size.B_total, size.D), (size.D, size.D_ff), (size.D, size.D_ff), (size.D_ff, size.D)]
    return _shard(*(torch.randn(shape, dtype=torch.bfloat16) for shape in shapes), world)

import torch

from problems.leaves import Group


def _groups(world):
    """(context-parallel, pipeline) groups; rank = stage * cp_size + cp_index."""
    stages = min(2, world)
    cp_size = world // stages
    cp = [tuple(s * cp_size + c for c in range(cp_size)) for s in range(stages)]
    pp = [tuple(s * cp_size + c for s in range(stages)) for c in range(cp_size)]
    return cp, pp


def groups(world):
    cp, pp = _groups(world)
    return cp + pp


def _scale(size, draw):
    """None (the default scale) or an explicit number near it."""
    return None if draw.integer(0, 2) else size.d**-0.5 * draw.number(0.5, 1.5)


def _weights(size, heads, draw):
    """w_qkv and w_o, scaled by the fan-in; queries larger, so that the softmax is not flat."""
    width = heads * size.d
    std = size.D**-0.5
    q = draw.normal((width, size.D), torch.bfloat16, std=std * draw.number(1.0, 3.0))
    kv = draw.normal((2 * width, size.D), torch.bfloat16, std=std)
    return [torch.cat([q, kv]), draw.normal((size.D, width), torch.bfloat16, std=(size.h * size.d) ** -0.5)]


def _assemble(hidden, weights, world, heads, scale, causal):
    cp, pp = _groups(world)
    ranks = []
    for rank in range(world):
        s, c = divmod(rank, len(pp))
        tensors = [hidden[rank], *(part.clone() for part in weights[s])]
        ranks.append([*tensors, heads, scale, causal, Group(cp[s]), Group(pp[c])])
    return ranks


def build(size, world, draw):
    cp, pp = _groups(world)
    causal, scale = draw.integer(0, 4) > 0, _scale(size, draw)
    # Later stages get a decoy: only its shape may matter.
    hidden = [draw.normal((size.B, size.T // len(pp), size.D)) for _ in range(world)]
    return _assemble(hidden, [_weights(size, size.h, draw) for _ in cp], world, size.h, scale, causal)


def upstream(size, world, trial):
    cp, pp = _groups(world)
    seed = 42 + 1000 * 57 + 1000003 * trial  # 57 is the published constant of this problem
    hidden, weights = [], []
    for rank in range(world):
        torch.manual_seed(seed + rank % len(pp))
        hidden.append(torch.randn(size.B, size.T // len(pp), size.D, dtype=torch.bfloat16))
    for s in range(len(cp)):
        torch.manual_seed(seed + 20000 + s)
        shapes = ((3 * size.h * size.d, size.D), (size.D, size.h * size.d))
        weights.append([torch.randn(shape, dtype=torch.bfloat16) * 0.02 for shape in shapes])
    return _assemble(hidden, weights, world, size.h, None, True)

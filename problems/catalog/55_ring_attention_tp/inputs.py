import torch

from problems.leaves import Group


def _groups(world):
    """(tensor-parallel, context-parallel) groups; rank = cp_index * tp_size + tp_index."""
    tp_size = min(2, world)
    cp_size = world // tp_size
    tp = [tuple(c * tp_size + t for t in range(tp_size)) for c in range(cp_size)]
    cp = [tuple(c * tp_size + t for c in range(cp_size)) for t in range(tp_size)]
    return tp, cp


def groups(world):
    tp, cp = _groups(world)
    return tp + cp


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
    tp, cp = _groups(world)
    ranks = []
    for rank in range(world):
        c, t = divmod(rank, len(cp))
        tensors = [hidden[c].clone(), *(part.clone() for part in weights[t])]
        ranks.append([*tensors, heads, scale, causal, Group(tp[c]), Group(cp[t])])
    return ranks


def build(size, world, draw):
    tp, cp = _groups(world)
    causal, scale = draw.integer(0, 4) > 0, _scale(size, draw)
    hidden = [draw.normal((size.B, size.T // len(tp), size.D)) for _ in tp]
    weights = [_weights(size, size.h // len(cp), draw) for _ in cp]
    return _assemble(hidden, weights, world, size.h, scale, causal)


def upstream(size, world, trial):
    tp, cp = _groups(world)
    seed = 42 + 1000 * 56 + 1000003 * trial  # 56 is the published constant of this problem
    width = size.h // len(cp) * size.d
    hidden, weights = [], []
    for c in range(len(tp)):
        torch.manual_seed(seed + c)
        hidden.append(torch.randn(size.B, size.T // len(tp), size.D, dtype=torch.bfloat16))
    for t in range(len(cp)):
        torch.manual_seed(seed + 10000 + t)
        shapes = ((3 * width, size.D), (size.D, width))
        weights.append([torch.randn(shape, dtype=torch.bfloat16) * 0.02 for shape in shapes])
    return _assemble(hidden, weights, world, size.h, None, True)

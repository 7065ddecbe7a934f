import torch

BATCH = 2
KINDS = 4


def _clear_border(logits, top_k):
    """Lift each row's top_k, so that no rounding can change which experts are chosen."""
    chosen = logits.topk(top_k, dim=-1).indices
    return logits.scatter_add_(-1, chosen, torch.full(chosen.shape, 0.25))


def _mask(rows, draw):
    keep = draw.mask((BATCH, rows // BATCH), draw.number(0.3, 0.95))
    keep[0, 0] = True
    return keep.to(torch.int64)


def _kinds(size, draw):
    """What a few kinds of tokens prefer, and what a row of each has in common.

    A softmax does not see the latter, a format with few digits does. As a kind's rows are nearly alike, what it does
    to them does not average out.
    """
    preferred = draw.normal((KINDS, size.E), torch.float32, std=draw.number(0.7, 2.0))
    return preferred + draw.uniform((KINDS, 1), -16.0, 16.0)


def _uneven(rows, draw):
    """A number in [0, 1) for each row that differs on average between any two halves, thirds, fifths or sevenths.

    So the rows of a regular pattern are not like the rest. Rows taken at random are, and no inputs can change that:
    among millions each counts for next to nothing.
    """
    place = torch.arange(rows)
    total = draw.normal((rows,), torch.float32)
    parts = [(2**bit, 2) for bit in range((rows - 1).bit_length())] + [(1, 3), (1, 5), (1, 7)]
    for length, count in parts:
        weights = draw.permutation(count) * 1.5 + draw.uniform((count,), 0.0, 0.5)  # no two nearly alike
        total += (weights - weights.mean())[place // length % count]
    return total.sub_(total.mean()).div_(total.std() * 2**0.5).erf_().add_(1.0).div_(2.0).clamp_(0.0, 0.999)


def _logits(size, top_k, mask, layers, kinds, draw):
    # The square of a uniform number: each rank has much of one kind and little of another.
    uneven = (_uneven(size.T, draw).square() * KINDS).long() + draw.integer(0, KINDS)
    logits = kinds[uneven % KINDS] + draw.normal((size.T, size.E), torch.float32, std=0.05)
    if mask is not None:
        padding = mask.reshape(-1).repeat(layers) == 0
        logits[padding] += draw.normal((size.E,), torch.float32) * 3.0
    return _clear_border(logits, top_k).to(torch.bfloat16)


def build(size, world, draw):
    layers = (1, 2, 4)[draw.integer(0, 3)]
    masked = draw.integer(0, 4) > 0
    kinds = _kinds(size, draw)
    top_k = draw.integer(1, size.top_k + 3)
    ranks = []
    for _ in range(world):
        mask = _mask(size.T // layers, draw) if masked else None
        logits = _logits(size, top_k, mask, layers, kinds, draw)
        gate = logits if layers == 1 else tuple(part.clone() for part in logits.chunk(layers))
        ranks.append([gate, size.E, top_k, mask])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 24 + rank + 1000003 * trial)
        logits = torch.randn(size.T, size.E, dtype=torch.bfloat16)
        ranks.append([logits, size.E, size.top_k, None])
    return ranks

import torch

HEAD = 16
TAIL = 0.002
SQRT_E = 1.6487


def _head(size, draw, top_k, top_p):
    """Logits of the HEAD likely ids of each row, descending, such that no rounding decides the filter.

    Of 32 candidates per row the one is taken whose cumulative sums stay furthest from 1 - top_p. The other ids
    together weigh TAIL of the head.
    """
    spacing = draw.uniform((32, size.T, HEAD), 0.15, 0.75)
    spacing[..., 0] = 0.0
    head = draw.uniform((32, size.T, 1), 3.0, 5.0) - spacing.cumsum(-1)
    head = head.to(torch.bfloat16).double()
    if top_p >= 1.0:
        return head[0]
    weight = head.exp()
    tail = TAIL * weight.sum(-1, keepdim=True)
    if top_k is not None and top_k <= HEAD:
        weight[..., top_k:] = 0.0
        tail = torch.zeros_like(tail)
    total = weight.sum(-1, keepdim=True) + tail
    held = (total - weight.cumsum(-1) + weight) / total
    distance = (held.clamp(min=1e-9).log() - torch.tensor(1.0 - top_p).log()).abs().amin(-1)
    best = distance.argmax(0)
    return head[best, torch.arange(size.T)]


def _logits(size, world, draw, top_k, top_p):
    """All ranks' parts of the logits, and the ids of each row's head, most likely first."""
    head = _head(size, draw, top_k, top_p)
    block = size.V // HEAD
    ids = draw.integers((size.T, HEAD), 0, block)
    ids = ids + block * draw.uniform((size.T, HEAD)).argsort(-1)
    centre = (TAIL * head.exp().sum(-1, keepdim=True) / (size.V * SQRT_E)).log().float()
    width = size.V // world
    parts = []
    for rank in range(world):
        part = (draw.normal((size.T, width), torch.float32) + centre).to(torch.bfloat16)
        rows, columns = (ids // width == rank).nonzero(as_tuple=True)
        part[rows, ids[rows, columns] - rank * width] = head[rows, columns].to(torch.bfloat16)
        parts.append(part.view(size.B, -1, width))
    return parts, ids


def _target(size, draw, ids):
    likely = ids.gather(-1, draw.integers((size.T, 1), 0, 6)).squeeze(-1)
    anywhere = draw.integers((size.T,), 0, size.V)
    return torch.where(draw.mask((size.T,)), likely, anywhere).view(size.B, -1)


def build(size, world, draw):
    top_k = (None, 5, 10, 50)[draw.integer(0, 4)]
    top_p = (1.0, 0.95, 0.9, 0.8)[draw.integer(0, 4)]
    parts, ids = _logits(size, world, draw, top_k, top_p)
    target = _target(size, draw, ids)
    grad = draw.values((size.B, size.T // size.B))
    chunk = size.T // size.B // size.nch
    return [[part, target.clone(), grad.clone(), None, top_k, top_p, chunk] for part in parts]


def upstream(size, world, trial):
    count, width = size.T, size.V // world
    target = (19 * torch.arange(count) + 5 + trial) % size.V
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 84 + rank + 1000003 * trial)
        logits = torch.randn(size.B, count // size.B, width, dtype=torch.bfloat16)
        owned = (target // width == rank).nonzero().squeeze(-1)
        logits.view(count, width)[owned, target[owned] - rank * width] += 8.0
        grad = torch.linspace(-1, 1, count, dtype=torch.bfloat16).view(size.B, -1)
        chunk = min(count // size.B, -(-max(world, count // size.B // 4) // world) * world)
        ranks.append([logits, target.view(size.B, -1).clone(), grad, None, 10, 0.9, chunk])
    return ranks

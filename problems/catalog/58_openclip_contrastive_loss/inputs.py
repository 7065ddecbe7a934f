import math

import torch
from torch.nn import functional


def _directions(draw, rows, columns):
    return functional.normalize(draw.normal((rows, columns), torch.float32), dim=1)


def _features(topic, rest, order):
    """Rows of unit length: two coordinates of the rank's topic, the rest of each row's own, columns in any order."""
    length = (1.0 - topic.square().sum()).sqrt()
    return torch.cat([topic.expand(len(rest), 2), rest * length], dim=1)[:, order]


def build(size, world, draw):
    rows = size.M // world
    # One large coordinate that all rows share, well between two neighbours in e4m3 (16ths): what a format with few
    # digits does to it, it does to all products alike, so that it does not average out.
    anchor = (draw.integer(9, 13) + draw.integer(5, 12) / 16) / 16
    # Its product with the scale is a bf16 number, for the same reason: the reference rounds it.
    scale = float(torch.tensor(draw.number(8.0, 12.0) * anchor).to(torch.bfloat16)) / anchor
    # A chunk's negatives weigh about as much as its positives.
    bias = draw.number(-1.0, 1.0) - math.log(rows) - scale * anchor**2
    order = draw.permutation(size.D)
    ranks = []
    for _ in range(world):
        topic = torch.tensor([anchor, draw.number(-0.35, 0.35)])
        own = _directions(draw, rows, size.D - 2)
        close = draw.number(0.6, 1.2) * _directions(draw, rows, size.D - 2)
        image = _features(topic, own, order)
        text = _features(topic, functional.normalize(own + close, dim=1), order)
        ranks.append([image.to(torch.bfloat16), text.to(torch.bfloat16), scale, bias, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 58 + rank + 1000003 * trial)
        pair = [torch.randn(size.M // world, size.D, dtype=torch.bfloat16) for _ in range(2)]
        image, text = (functional.normalize(part, dim=1, eps=1e-12) for part in pair)
        ranks.append([image, text, 10.0, -10.0, None])
    return ranks

import math

import torch
from torch.nn import functional

FEW = 32
CLUSTERS = 8
ALIKE = 0.83  # cosine between a row and the center of its cluster


def _directions(draw, rows, columns):
    return functional.normalize(draw.normal((rows, columns), torch.float32), dim=1)


def _features(topic, rest, order):
    """Rows of unit length: two coordinates of the rank's topic, the rest of each row's own, columns in any order."""
    length = (1.0 - topic.square().sum()).sqrt()
    return torch.cat([topic.expand(len(rest), 2), rest * length], dim=1)[:, order]


def _near(center, own, cosine):
    """Unit rows at this cosine from a center to which their own directions are about orthogonal."""
    return functional.normalize(cosine * center + math.sqrt(1 - cosine**2) * own, dim=-1)


def _few(draw, rows, columns, world):
    """Each rank's images and texts where rows are so few that every pair of them counts."""
    for _ in range(world):
        image = _directions(draw, rows, columns)
        close = draw.number(0.6, 1.2) * _directions(draw, rows, columns)
        yield image, functional.normalize(image + close, dim=1)


def _many(draw, rows, columns, world, cosine):
    """Each rank's images and texts where single pairs weigh next to nothing and their sum would hardly vary.

    A quarter of a rank's rows lie in a few clusters, the others each near a direction of its own. For every pair of
    ranks one or two of the latter directions are a cluster's of the other rank: texts that a whole cluster of images
    takes for its own, and the same the other way round. What these add is seen, and from what a rank has it can't tell
    which of its rows they are.
    """
    centers = [[_directions(draw, CLUSTERS, columns) for _ in range(world)] for _ in range(2)]
    for rank in range(world):
        own = _directions(draw, rows, columns)
        pair = []
        for kind, part in enumerate((own, _near(own, _directions(draw, rows, columns), cosine))):
            near = _directions(draw, rows, columns)
            order = draw.permutation(rows).tolist()
            members, alone = order[: rows // 4], iter(order[rows // 4 :])
            near[members] = centers[kind][rank][torch.arange(len(members)) % CLUSTERS]
            for other in range(world):
                for _ in range(draw.integer(1, 3) if other != rank else 0):
                    near[next(alone)] = centers[1 - kind][other][draw.integer(0, CLUSTERS)]
            pair.append(_near(near, part, ALIKE))
        yield pair


def build(size, world, draw):
    rows, rest = size.M // world, size.D - 2
    many = rows > FEW
    # One large coordinate that all rows share, well between two neighbours in e4m3: what a format with few
    # digits does to it, it does to all products alike, so that it does not average out.
    step = draw.integer(12, 15) if many else draw.integer(9, 13)
    anchor = (step + draw.integer(5, 12) / 16) / (32 if many else 16)
    # Its product with the scale is a bf16 number, for the same reason: the reference rounds it.
    steep = 8 if many else 1
    scale = float(torch.tensor(steep * draw.number(8.0, 12.0) * anchor).to(torch.bfloat16)) / anchor
    # What unrelated rows have in common.
    apart = draw.number(-1.0, 1.0) - math.log(rows)
    bias = apart - scale * anchor**2
    order = draw.permutation(size.D)
    if many:
        reach = scale * (1 - anchor**2)  # between the logits of rows that are unrelated and alike
        bias -= (
            reach**2 / rest / 2
        )  # unrelated logits spread: the mean of their exponentials is as if they did not
        cosine = (draw.number(0.0, 3.0) - apart + reach**2 / rest / 2) / (reach * (1 - ALIKE**2))
        pairs = _many(draw, rows, rest, world, min(cosine, 0.95))
    else:
        pairs = _few(draw, rows, rest, world)
    ranks = []
    for _ in range(world):
        topic = torch.tensor([anchor, draw.number(-0.35, 0.35) / steep**0.5])
        image, text = (_features(topic, part, order).to(torch.bfloat16) for part in next(pairs))
        ranks.append([image, text, scale, bias, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 58 + rank + 1000003 * trial)
        pair = [torch.randn(size.M // world, size.D, dtype=torch.bfloat16) for _ in range(2)]
        image, text = (functional.normalize(part, dim=1, eps=1e-12) for part in pair)
        ranks.append([image, text, 10.0, -10.0, None])
    return ranks

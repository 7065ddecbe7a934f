import torch


def _counts(size, world, draw):
    """Objects per rank: the published cycle in a new order, in one of four calls with an empty rank."""
    if size.c > 1:
        return [size.c] * world
    order = draw.permutation(world).tolist()
    counts = [1 + slot % 3 for slot in order]
    if draw.integer(0, 4) == 0:
        counts[order.index(1)] += counts[order.index(0)]
        counts[order.index(0)] = 0
    return counts


def _inside(size, draw, total, twins):
    """Pixels of each object: copies of a shape with some pixels flipped; the twins are nearly equal."""
    shapes = draw.mask((max(2, total // 4), size.px), 0.4)
    which = draw.permutation(total) % len(shapes)
    which[twins[0]] = which[twins[1]]
    noise = draw.uniform((total, 1), 0.01, 0.25)
    noise[list(twins)] = 0.01
    return shapes[which] ^ (draw.uniform((total, size.px)) < noise)


def _threshold(inside, last, reverse, draw):
    """Between two neighbours among the IoUs at which an object is suppressed, unless they are too close to tell apart.

    Every such gap has an answer of its own, and all are as likely.
    """
    flat = inside.float()
    common, area = flat @ flat.T, flat.sum(1)
    iou = common / (area[:, None] + area - common).clamp(min=1.0)
    mine, other = last[:, None], last[None, :]
    rivals = (other > -1) & ((mine < other) if reverse else (mine > other))
    closest = (iou * rivals).amax(dim=1).double()
    edges = torch.cat([closest[closest > 0.3], closest.new_tensor([0.3, 1.0])]).unique()
    gaps = edges.diff()
    wide = (gaps > 4e-4).nonzero().flatten()
    place = int(wide[draw.integer(0, len(wide))])
    return float(edges[place] + gaps[place] * draw.number(0.3, 0.7))


def build(size, world, draw):
    counts = _counts(size, world, draw)
    total = sum(counts)
    twins = draw.permutation(total)[:2].tolist()
    inside = _inside(size, draw, total, twins)
    last = draw.integers((total,), -1, 10)
    last[twins[0]], last[twins[1]] = 3, 1
    reverse = draw.integer(0, 2) == 1
    threshold = _threshold(inside, last, reverse, draw)
    side = int(size.px**0.5)
    values = draw.values((total, size.px)).abs()
    masks = torch.where(inside, values, -values).view(total, side, side)
    scores = draw.values((total,))
    ranks = []
    for mine, score in zip(masks.split(counts), scores.split(counts), strict=True):
        ranks.append([mine.clone(), score.clone(), list(counts), last.clone(), threshold, reverse, None])
    return ranks


def upstream(size, world, trial):
    counts = [1 + (rank + trial) % 3 if size.c == 1 else size.c for rank in range(world)]
    last = torch.arange(sum(counts)) % 5 - 1
    side = int(size.px**0.5)
    row, column = torch.arange(side).view(1, -1, 1), torch.arange(side).view(1, 1, -1)
    ranks = []
    for rank, count in enumerate(counts):
        torch.manual_seed(42 + 1000 * 81 + rank + 1000003 * trial)
        masks = torch.randn(count, side, side, dtype=torch.bfloat16)
        pattern = (row + column + torch.arange(count).view(-1, 1, 1) + rank) % 5 == 0
        masks = masks + pattern.to(torch.bfloat16) * 4.0 - 1.0
        scores = torch.linspace(-5, 5, count, dtype=torch.bfloat16)
        ranks.append([masks, scores, list(counts), last.clone(), 0.7, False, None])
    return ranks

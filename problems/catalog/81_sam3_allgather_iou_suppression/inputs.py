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
    shapes = draw.mask((max(2, total // 2), size.px), 0.4)
    which = draw.integers((total,), 0, shapes.shape[0])
    which[twins[0]] = which[twins[1]]
    noise = draw.uniform((total, 1), 0.01, 0.15)
    noise[list(twins)] = 0.01
    return shapes[which] ^ (draw.uniform((total, size.px)) < noise)


def _threshold(inside, draw):
    """A threshold that no IoU comes near."""
    flat = inside.float()
    common, area = flat @ flat.T, flat.sum(1)
    iou = (common / (area[:, None] + area - common).clamp(min=1.0)).flatten()
    candidates = draw.uniform((16,), 0.5, 0.8, torch.float64)
    distance = torch.stack([(iou - value).abs().min() for value in candidates])
    return float(candidates[distance.argmax()])


def build(size, world, draw):
    counts = _counts(size, world, draw)
    total = sum(counts)
    twins = draw.permutation(total)[:2].tolist()
    inside = _inside(size, draw, total, twins)
    last = draw.integers((total,), -1, 5)
    last[twins[0]], last[twins[1]] = 3, 1
    threshold, reverse = _threshold(inside, draw), draw.integer(0, 2) == 1
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

import torch


def _degrees(size, nodes, draw):
    """Heavy-tailed, size.degree on average, at most eight times that; one node in twenty is isolated."""
    scale = draw.uniform((nodes,), 1e-6, 1.0, torch.float64).rsqrt() * (size.degree / 2 + 0.25)
    degrees = scale.floor().clamp(max=8 * size.degree).long()
    return degrees * draw.mask((nodes,), 0.95)


def _targets(draw, count, nodes):
    """Neighbours: one in four is a hub."""
    targets = draw.integers((count,), 0, nodes)
    hubs = draw.integers((max(2, nodes // 100),), 0, nodes)
    return torch.where(draw.mask((count,), 0.25), hubs[draw.integers((count,), 0, len(hubs))], targets)


def _fanouts(size, draw):
    fanouts = [f for f in (size.f1, size.f2, size.f3) if f]
    mode = draw.integer(0, 4)
    if mode == 2:
        fanouts[-1] = -1
    if mode == 3:
        fanouts[0] = 2 * size.degree
    return fanouts


def build(size, world, draw):
    nodes = -(-size.num_nodes // world) * world
    owner = draw.permutation(nodes) % world
    degrees = _degrees(size, nodes, draw)
    row_ptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    col = _targets(draw, int(row_ptr[-1]), nodes)
    home = owner.repeat_interleave(degrees)
    fanouts = _fanouts(size, draw)
    ranks = []
    for rank in range(world):
        # Only the owner has a node's neighbours; elsewhere other ids stand in their place.
        wrong = (col + draw.integer(1, nodes)) % nodes
        mine = torch.where(home == rank, col, wrong)
        count = draw.integer(size.s - size.s // 4, size.s + size.s // 4 + 1)
        seeds = draw.permutation(nodes)[:count]
        ranks.append([seeds, list(fanouts), row_ptr.clone(), mine, owner.clone(), None, False])
    return ranks


def upstream(size, world, trial):
    nodes = -(-size.num_nodes // world) * world
    ids = torch.arange(nodes)
    row_ptr = torch.arange(nodes + 1) * 16
    col = ((ids.unsqueeze(1) + torch.arange(1, 17)) % nodes).flatten()
    fanouts = [f for f in (size.f1, size.f2, size.f3) if f]
    ranks = []
    for rank in range(world):
        seeds = (rank * size.s + torch.arange(size.s)) % nodes
        ranks.append([seeds, list(fanouts), row_ptr.clone(), col.clone(), ids % world, None, False])
    return ranks

import torch


def _keep(row, top_k, top_p):
    """Which logits stay, by mass: an entry stays when all larger ones together weigh less than top_p.

    The inputs keep every cut far from a tie and from rounding, so that this is the same set in any precision.
    """
    keep = torch.ones_like(row, dtype=torch.bool)
    if top_k is not None and top_k < row.shape[-1]:
        keep = row >= row.kthvalue(row.shape[-1] - top_k + 1, dim=-1, keepdim=True).values
    if top_p < 1.0:
        mass = torch.where(keep, (row - row.amax(-1, keepdim=True)).exp(), 0.0)
        mass = mass / mass.sum(-1, keepdim=True)
        order = mass.argsort(dim=-1, descending=True)
        ordered = mass.gather(-1, order)
        larger = torch.empty_like(mass).scatter_(-1, order, ordered.cumsum(-1) - ordered)
        keep &= larger < top_p
    return keep


def golden(ranks, size, world, dtype):
    _, target, grad, _, top_k, top_p, _ = ranks[0]
    row = torch.cat([args[0].to(dtype) for args in ranks], dim=-1)
    keep = _keep(row, top_k, top_p)
    filtered = row.masked_fill(~keep, float("-inf"))
    chance = (filtered - torch.logsumexp(filtered, dim=-1, keepdim=True)).exp()
    hit = torch.nn.functional.one_hot(target, size.V).to(dtype) * keep
    return list((grad.to(dtype).unsqueeze(-1) * (hit - chance)).chunk(world, dim=-1))

import torch


def golden(ranks, size, world, dtype):
    masks = torch.cat([args[0] for args in ranks]).float()
    scores = torch.cat([args[1] for args in ranks]).float()
    _, _, _, last, threshold, reverse, _ = ranks[0]
    inside = (masks > 0).flatten(1).to(dtype)
    either = inside.shape[1] - (1 - inside) @ (1 - inside).T
    close = (inside @ inside.T >= threshold * either) & (either > 0)
    sign = -1 if reverse else 1
    suppressed = torch.zeros_like(last, dtype=torch.bool)
    for i, mine in enumerate(last.tolist()):
        rivals = [other for j, other in enumerate(last.tolist()) if j != i and close[i, j]]
        suppressed[i] = any(other > -1 and sign * mine > sign * other for other in rivals)
    masks[suppressed] = -10.0
    return [(masks, scores, suppressed) for _ in ranks]

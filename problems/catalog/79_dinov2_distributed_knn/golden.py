import torch


def golden(ranks, size, world, dtype):
    train = torch.cat([args[1] for args in ranks], dim=1).to(dtype)
    labels = torch.cat([args[2] for args in ranks], dim=1).squeeze(0)
    results = []
    for queries, _, _, k, _ in ranks:
        blocks = [(block.to(dtype) @ train).topk(k, dim=1) for block in queries.split(128)]
        sims = torch.cat([block.values for block in blocks])
        results.append((sims, labels[torch.cat([block.indices for block in blocks])]))
    return results


def check(args, got, want, size):
    """Each label names a different training vector with the similarity that stands beside it."""
    train = torch.cat([rank[1] for rank in args], dim=1).T
    known, place = torch.cat([rank[2] for rank in args], dim=1).squeeze(0).sort()
    if bool((known.diff() == 0).any()):
        return None  # the published labels repeat and name no vector: the similarities decide alone
    for rank, answer in enumerate(got):
        sims, chosen = (part.to(known.device) for part in answer.output)
        wrong = _wrong_labels(chosen, want[rank].output[1], known)
        if wrong:
            return rank, f"topk_labels {wrong}"
        vectors = train[place[torch.searchsorted(known, chosen)]]
        exact = torch.einsum("qd,qkd->qk", args[rank][0].double(), vectors.double())
        bad = ~((sims.double() - exact).abs() <= 1e-5 + 0.008 * exact.abs())
        if bool(bad.any()):
            row, column = (int(i) for i in bad.nonzero()[0])
            return rank, (
                f"topk_labels[{row}, {column}] belongs to a vector of similarity "
                f"{float(exact[row, column]):.6g}; beside it stands {float(sims[row, column]):.6g}"
            )
    return None


def _wrong_labels(chosen, want, known):
    """What is wrong with the labels by themselves, or None."""
    if chosen.shape != want.shape or chosen.dtype != want.dtype:
        return f"is {tuple(chosen.shape)} {chosen.dtype}, expected {tuple(want.shape)} {want.dtype}"
    slot = torch.searchsorted(known, chosen).clamp(max=known.numel() - 1)
    if bool((known[slot] != chosen).any()):
        return "holds a label that no training vector has"
    if bool((chosen.sort(dim=1).values.diff(dim=1) == 0).any()):
        return "names a training vector twice in a row"
    return None

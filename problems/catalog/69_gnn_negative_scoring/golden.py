import torch


def _places(args):
    """First and last admissible place of each positive of one rank; the sigmoid's bf16 rounding counts."""
    pos, neg = (torch.sigmoid(x.double()).to(torch.bfloat16) for x in args[:2])
    first = 1 + (neg > pos.unsqueeze(1)).sum(1)
    return first, first + (neg == pos.unsqueeze(1)).sum(1)


def golden(ranks, size, world, dtype):
    places = torch.cat([_places(args)[0] for args in ranks])
    return [places for _ in ranks]


def check(args, got, want, size):
    """Each place lies among those that the positive can have between its equals."""
    first, last = (torch.cat(parts) for parts in zip(*(_places(rank) for rank in args), strict=True))
    for rank, answer in enumerate(got):
        ranking = answer.output.to(first.device)
        if ranking.shape != first.shape or ranking.dtype != torch.int64:
            return rank, f"ranking is {tuple(ranking.shape)} {ranking.dtype}, not {tuple(first.shape)} int64"
        bad = ((ranking < first) | (ranking > last)).nonzero()
        if bad.numel():
            row = int(bad[0])
            return rank, (
                f"ranking[{row}] is {int(ranking[row])}, expected {int(first[row])} to {int(last[row])}"
            )
    return None

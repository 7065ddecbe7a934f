import torch


def golden(ranks, size, world, dtype):
    answers = [tensor.clone() for tensor, _ in ranks]
    answers[ranks[0][1]] = torch.stack([tensor.to(dtype) for tensor, _ in ranks]).sum(0)
    return answers


def check(args, got, want, size):
    """Beside the comparison of values: ranks other than dst hand back their input's bits."""
    for rank, (tensor, target) in enumerate(args):
        if rank == target:
            continue
        wrong = got[rank].output.view(torch.int16) != tensor.view(torch.int16)
        if bool(wrong.any()):
            first = wrong.nonzero()[0].tolist()
            return rank, f"is not a bit copy of this rank's input; first difference at {first}"
    return None

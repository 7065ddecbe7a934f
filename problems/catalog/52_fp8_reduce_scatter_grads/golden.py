import torch


def _restored(values, history):
    """What e4m3 leaves of the values, rounded to bfloat16, and the new history; exact.

    The codes are part of the task, so they are decided here as well; the inputs keep quotients clear of
    the boundaries between codes, so float64 decides as float32 does.
    """
    amax = values.abs().max()
    history = torch.cat([history[1:], amax.reshape(1).to(history.dtype)])
    scale = max(history.max().item(), 1e-12) / 448
    codes = (values.double() / scale).to(torch.float8_e4m3fn)
    return (codes.double() * scale).to(values.dtype), history


def golden(ranks, size, world, dtype):
    pairs = [_restored(*args) for args in ranks]
    mean = torch.stack([values.to(dtype) for values, _ in pairs]).mean(0)
    return [(part, history) for part, (_, history) in zip(mean.chunk(world), pairs, strict=True)]

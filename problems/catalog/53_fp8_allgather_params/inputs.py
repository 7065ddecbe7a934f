import torch


def _history(draw, amax):
    """16 former maxima: the largest lies in the window, in the entry about to leave it, or is the new one."""
    history = (draw.uniform((16,), 0.1, 0.9) * amax).to(torch.bfloat16)
    where = draw.integer(0, 3)
    if where == 0:
        history[draw.integer(1, 16)] = amax * draw.number(1.1, 3.0)
    elif where == 1:
        history[0] = amax * draw.number(1.1, 3.0)
    return history


def _without_ties(values, history):
    """Move values whose quotient lies on a boundary between two fp8 codes to the next bfloat16.

    Whether a solution divides by the scale or multiplies by its inverse then makes no difference.
    """
    scale = max(history[1:].max().item(), values.abs().max().item()) / 448
    for _ in range(2):
        quotient = values.to(torch.float32) / scale
        low, high = (
            (quotient * factor).to(torch.float8_e4m3fn).view(torch.uint8) for factor in (1 - 1e-5, 1 + 1e-5)
        )
        values = torch.where(low == high, values, (values.to(torch.float32) * (1 - 2**-7)).to(torch.bfloat16))
    return values


def _vector(draw, count):
    values = draw.normal((count,), torch.bfloat16, std=2.0 ** draw.number(-4.0, 4.0))
    peak = values.abs().argmax()
    # An odd mantissa: then the scale is no power of two and codes are not their own rounding.
    odd = 2 * draw.integer(64, 128) + 1
    exponent = torch.frexp(values[peak].to(torch.float32)).exponent.item()
    values[peak] = (-1) ** draw.integer(0, 2) * odd * 2.0 ** (exponent - 7)
    return values


def build(size, world, draw):
    ranks = []
    for _ in range(world):
        values = _vector(draw, size.P)
        history = _history(draw, values.abs().max().item())
        ranks.append([_without_ties(values, history), history])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 53 + rank + 1000003 * trial)
        values = torch.randn(size.P, dtype=torch.bfloat16)
        ranks.append([values, torch.full((16,), 1e-8, dtype=torch.bfloat16)])
    return ranks

"""Inputs and truth of data-parallel training steps: a two-layer MLP under Adam.

The model: a = relu(X W1' + b1), o = a W2' + b2, loss = mean of (o - y)² over the local rows.
Flat order everywhere: W1, b1, W2, b2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from problems.draw import Draw

PLANTED = 3


@dataclass(frozen=True)
class Adam:
    """The scalars of one step, in the order of the signatures."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    step: int


def mlp_shapes(din: int, hid: int, dout: int) -> list[tuple[int, ...]]:
    """Shapes of W1, b1, W2, b2."""
    return [(hid, din), (hid,), (dout, hid), (dout,)]


def mlp_count(din: int, hid: int, dout: int) -> int:
    """How many parameters the model has."""
    return hid * din + hid + dout * hid + dout


def batches(
    draw: Draw, rows: int, din: int, dout: int, world: int
) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
    """(planted columns, (X, y) of every rank).

    Three columns of X hold only +1 and -1; see `parameters`.
    """
    columns = draw.permutation(din)[:PLANTED]
    found = []
    for _ in range(world):
        x = draw.normal((rows, din))
        x[:, columns] = (draw.integers((rows, PLANTED), 0, 2) * 2 - 1).to(x.dtype)
        found.append((x, draw.normal((rows, dout))))
    return columns, found


def parameters(draw: Draw, din: int, hid: int, dout: int, columns: torch.Tensor) -> list[torch.Tensor]:
    """W1, b1, W2, b2 in bf16 such that no pre-activation is near zero.

    W1 holds +1 and -1 in the planted columns, which add up to an odd number, and is so small elsewhere
    that the rest and the bias cannot change the sign: no rounding decides what relu lets through.
    """
    w1 = draw.normal((hid, din), std=0.1 * din**-0.5)
    w1[:, columns] = (draw.integers((hid, PLANTED), 0, 2) * 2 - 1).to(w1.dtype)
    b1 = draw.uniform(hid, -0.2, 0.2, torch.bfloat16)
    return [w1, b1, draw.normal((dout, hid), std=hid**-0.5), draw.normal(dout, std=0.5)]


def moments(draw: Draw, count: int, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """First and second moment, bf16, as gradients of about `scale` leave them."""
    second = draw.uniform(count, 0.3, 1.5) * scale**2
    return draw.normal(count, std=0.7 * scale), second.to(torch.bfloat16)


def gradient_scale(rows: int, dout: int, world: int) -> float:
    """Typical size of an element of the averaged gradient under these inputs."""
    return 3.0 / (dout * (rows * world) ** 0.5)


def adam(draw: Draw, scale: float) -> Adam:
    """Scalars under which the gradient, both moments, eps and the step count all show in the result."""
    return Adam(
        lr=draw.number(0.02, 0.05),
        beta1=draw.number(0.5, 0.9),
        beta2=draw.number(0.6, 0.95),
        eps=draw.number(0.1, 0.4) * scale,
        step=draw.integer(2, 30),
    )


def flat_gradient(
    x: torch.Tensor, y: torch.Tensor, params: list[torch.Tensor], dtype: torch.dtype
) -> torch.Tensor:
    """The gradient of the local loss in `dtype`, flat, by the chain rule."""
    x, y = x.to(dtype), y.to(dtype)
    w1, b1, w2, b2 = (p.to(dtype) for p in params)
    z = x @ w1.T + b1
    a = z * (z > 0)
    slope = 2.0 * (a @ w2.T + b2 - y) / y.numel()
    back = (slope @ w2) * (z > 0)
    parts = [back.T @ x, back.sum(0), slope.T @ a, slope.sum(0)]
    return torch.cat([part.reshape(-1) for part in parts])


def adam_step(
    p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor, scalars: list[float]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Parameter and moments after one step (lr, beta1, beta2, eps, step), in the dtype of `g`."""
    lr, beta1, beta2, eps, step = scalars
    p, m, v = p.to(g.dtype), m.to(g.dtype), v.to(g.dtype)
    m = torch.lerp(g, m, beta1)
    v = torch.lerp(g * g, v, beta2)
    root = torch.sqrt(v / (1 - beta2**step)) + eps
    return p - lr / (1 - beta1**step) * m / root, m, v


def split(flat: torch.Tensor, params: list[torch.Tensor]) -> list[torch.Tensor]:
    """A flat vector cut into the shapes of W1, b1, W2, b2."""
    parts = flat.split([p.numel() for p in params])
    return [part.view(p.shape) for part, p in zip(parts, params, strict=True)]

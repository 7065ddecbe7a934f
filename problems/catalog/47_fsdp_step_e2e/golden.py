import math

import torch


def golden(ranks, size, world, dtype):
    shapes = ranks[0][3]
    flat = torch.cat([args[2] for args in ranks]).to(dtype)
    w1, b1, w2, b2 = (
        part.view(shape)
        for part, shape in zip(flat.split([math.prod(s) for s in shapes]), shapes, strict=True)
    )
    # Equal batches: the mean of the ranks' means is the mean over the whole batch.
    x = torch.cat([args[0] for args in ranks]).to(dtype)
    y = torch.cat([args[1] for args in ranks]).to(dtype)
    before = x @ w1.T + b1
    hidden = before.clamp(min=0)
    d_out = 2 * (hidden @ w2.T + b2 - y) / y.numel()
    d_hidden = (d_out @ w2) * (before > 0)
    grads = (d_hidden.T @ x, d_hidden.sum(0), d_out.T @ hidden, d_out.sum(0))
    grad = torch.cat([part.reshape(-1) for part in grads])
    parts = grad.view(world, -1)
    return [_adam(args, part, dtype) for args, part in zip(ranks, parts, strict=True)]


def _adam(args, grad, dtype):
    theta, (m, v) = args[2].to(dtype), (part.to(dtype) for part in args[4:6])
    lr, beta1, beta2, eps, decay, step = args[6:]
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    change = (m / (1 - beta1**step)) / ((v / (1 - beta2**step)).sqrt() + eps)
    return theta - lr * (change + decay * theta), m, v

import math

import torch


def _turn(axis, angle):
    """Rotation matrix about coordinate `axis`."""
    c, s = math.cos(angle), math.sin(angle)
    i, j = [k for k in range(3) if k != axis]
    turn = torch.eye(3)
    turn[i, i], turn[i, j], turn[j, i], turn[j, j] = c, -s, s, c
    return turn


def _camera(size, draw, backwards):
    """A view matrix that looks along +z or -z with a small tilt, any roll and a small shift, and its K."""
    tilt = _turn(0, draw.number(-0.08, 0.08)) @ _turn(1, draw.number(-0.08, 0.08))
    view = torch.eye(4)
    view[:3, :3] = _turn(2, draw.number(0.0, 2 * math.pi)) @ tilt @ _turn(1, math.pi * backwards)
    view[:3, 3] = draw.uniform((3,), -0.15, 0.15) * torch.tensor([1.0, 1.0, 0.3])
    focal = draw.number(0.75, 0.85) * min(size.width, size.height)
    K = torch.tensor([[focal, 0, size.width / 2], [0, focal, size.height / 2], [0, 0, 1]])
    return view, K


def _margins(plane):
    """Where no gaussian lies, so that no camera's tilt, shift or rounding moves it across a plane at this depth."""
    return 0.92 * plane - 0.07, 1.08 * plane + 0.07


def _places(n, near, far, draw):
    """Means in five kinds of places: in front or behind, too near, about the far plane, and off to the side.

    Whether a camera sees a gaussian is clear by a margin, however a solution rounds; outside the margins depths are
    dense, so that a plane somewhere else sees others. Side ones lie outside every frame.
    """
    before_near, after_near = _margins(near)
    before_far, after_far = _margins(far)
    kind = draw.integers((n,), 0, 10)
    depth = draw.uniform((n,), after_near, 3.8)
    depth[kind == 7] = draw.uniform((n,), 0.15, before_near)[kind == 7]
    beyond = torch.where(
        draw.mask((n,), 0.4), draw.uniform((n,), 4.0, before_far), draw.uniform((n,), after_far, 12.0)
    )
    depth[kind == 8] = beyond[kind == 8]
    depth[kind == 9] = draw.uniform((n,), 2.2, 3.8)[kind == 9]
    angle = draw.uniform((n,), 0.0, 0.24)
    angle[kind == 9] = draw.uniform((n,), 1.0, 1.15)[kind == 9]
    around = draw.uniform((n,), 0.0, 2 * math.pi)
    flip = torch.where(draw.mask((n,), 0.6), 1.0, -1.0)
    x = depth * torch.tan(angle) * torch.cos(around)
    y = depth * torch.tan(angle) * torch.sin(around)
    return torch.stack([x, y, depth * flip], dim=-1)


def build(size, world, draw):
    eps2d, near = draw.number(0.25, 1.0), draw.number(0.6, 2.8)
    edge = draw.number(4.8, 10.0)
    far = edge if draw.integer(0, 6) else 1e10
    facing = draw.permutation(world * size.C) % 2
    ranks = []
    for rank in range(world):
        n = size.n - draw.integer(0, size.n // 8)
        cameras = [_camera(size, draw, int(facing[rank * size.C + c])) for c in range(size.C)]
        parts = [
            _places(n, near, edge, draw),
            draw.normal((n, 4), torch.float32),
            draw.uniform((n, 3), 0.005, 0.03),
            draw.uniform((n,), 0.1, 0.9),
            draw.uniform((n, 3)),
            torch.stack([view for view, _ in cameras]),
            torch.stack([K for _, K in cameras]),
        ]
        tensors = [part.to(torch.bfloat16) for part in parts]
        ranks.append([*tensors, size.width, size.height, eps2d, near, far, "pinhole"])
    return ranks


def upstream(size, world, trial):
    n, half = size.n, torch.bfloat16
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 61 + rank + 1000003 * trial)
        x, y, z = (torch.rand(n, dtype=half) for _ in range(3))
        means = torch.stack([(x - 0.5) * 1.5, (y - 0.5) * 1.5, 2 * z + 2], dim=-1)
        quats, scales = torch.randn(n, 4, dtype=half), torch.rand(n, 3, dtype=half) * 0.02
        opacities, colors = torch.rand(n, dtype=half) * 0.8 + 0.1, torch.rand(n, 3, dtype=half)
        views = torch.eye(4, dtype=half).expand(size.C, 4, 4).contiguous()
        focal = 0.8 * min(size.width, size.height)
        K = torch.tensor([[focal, 0, size.width / 2], [0, focal, size.height / 2], [0, 0, 1]], dtype=half)
        tensors = [means, quats, scales, opacities, colors, views, K.expand(size.C, 3, 3).contiguous()]
        ranks.append([*tensors, size.width, size.height, 0.3, 0.01, 1e10, "pinhole"])
    return ranks

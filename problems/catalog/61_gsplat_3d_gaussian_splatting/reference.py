from typing import List, Tuple

import torch
import torch.distributed as dist
from torch.nn import functional


def _covariance(quats: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    w, x, y, z = functional.normalize(quats, dim=-1).unbind(-1)
    rows = [
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    rotation = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    root = rotation * scales.unsqueeze(-2)
    return torch.matmul(root, root.transpose(-2, -1))


def _flatten(mean: torch.Tensor, cov: torch.Tensor, K: torch.Tensor, width: int, height: int) -> tuple:
    """Pinhole projection of camera-frame means (c, n, 3) and covariances (c, n, 3, 3)."""
    x, y, z = mean.unbind(-1)
    fx, fy, cx, cy = (K[:, i, j, None] for i, j in ((0, 0), (1, 1), (0, 2), (1, 2)))
    edge_x, edge_y = 0.3 * (0.5 * width / fx), 0.3 * (0.5 * height / fy)
    tx = z * torch.minimum(torch.maximum(x / z, -(cx / fx + edge_x)), (width - cx) / fx + edge_x)
    ty = z * torch.minimum(torch.maximum(y / z, -(cy / fy + edge_y)), (height - cy) / fy + edge_y)
    zero = torch.zeros_like(z)
    jacobian = torch.stack([fx / z, zero, -fx * tx / z**2, zero, fy / z, -fy * ty / z**2], dim=-1)
    jacobian = jacobian.reshape(*z.shape, 2, 3)
    cov2d = torch.einsum("...ij,...jk,...lk->...il", jacobian, cov, jacobian)
    mean2d = torch.einsum("cij,cnj->cni", K[:, :2, :], mean) / z.unsqueeze(-1)
    return mean2d, cov2d


def _project(
    means: torch.Tensor, cov: torch.Tensor, views: torch.Tensor, K: torch.Tensor, image: tuple, eps: float
) -> tuple:
    """radii (int32), means2d, depths and conics of all (camera, gaussian) pairs."""
    width, height, near, far = image
    rotation, shift = views[:, :3, :3], views[:, :3, 3]
    mean_c = torch.einsum("cij,nj->cni", rotation, means) + shift.unsqueeze(1)
    cov_c = torch.einsum("cij,njk,clk->cnil", rotation, cov, rotation)
    mean2d, cov2d = _flatten(mean_c, cov_c, K, width, height)
    cov2d = cov2d + torch.eye(2, dtype=means.dtype, device=means.device) * eps
    a, b, c, d = cov2d[..., 0, 0], cov2d[..., 0, 1], cov2d[..., 1, 0], cov2d[..., 1, 1]
    det = (a * d - b * c).clamp(min=1e-10)
    conics = torch.stack([d / det, -(b + c) / 2 / det, a / det], dim=-1)

    depth = mean_c[..., 2]
    radii = torch.stack([torch.ceil(3.33 * torch.sqrt(a)), torch.ceil(3.33 * torch.sqrt(d))], dim=-1)
    low, high = mean2d + radii, mean2d - radii
    seen = (depth > near) & (depth < far) & (low > 0).all(dim=-1)
    seen = seen & (high[..., 0] < width) & (high[..., 1] < height)
    return (radii * seen.unsqueeze(-1)).to(torch.int32), mean2d, depth, conics


def _exchange(rows: torch.Tensor, sent: List[int], received: List[int]) -> torch.Tensor:
    out = [rows.new_empty((count, *rows.shape[1:])) for count in received]
    dist.all_to_all(out, [part.contiguous() for part in rows.split(sent)])
    return torch.cat(out)


def _splits(owner: torch.Tensor, world: int) -> Tuple[List[int], List[int]]:
    """How many pairs go to and come from each rank."""
    sent = torch.bincount(owner, minlength=world)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    return sent.tolist(), received.tolist()


def solution(
    means: torch.Tensor,
    quats: torch.Tensor,
    scales: torch.Tensor,
    opacities: torch.Tensor,
    colors: torch.Tensor,
    viewmats: torch.Tensor,
    Ks: torch.Tensor,
    image_width: int,
    image_height: int,
    eps2d: float = 0.3,
    near_plane: float = 0.01,
    far_plane: float = 1e10,
    camera_model: str = "pinhole",
) -> Tuple[torch.Tensor, ...]:
    assert camera_model == "pinhole"
    world, cameras = dist.get_world_size(), viewmats.shape[0]
    counts = torch.zeros(world, dtype=torch.int64, device=means.device)
    dist.all_gather_into_tensor(counts, counts.new_tensor([means.shape[0]]))
    views, intrinsics = ([torch.empty_like(own) for _ in range(world)] for own in (viewmats, Ks))
    dist.all_gather(views, viewmats.contiguous())
    dist.all_gather(intrinsics, Ks.contiguous())

    image = (image_width, image_height, near_plane, far_plane)
    cov = _covariance(quats, scales)
    radii, *parts = _project(means, cov, torch.cat(views), torch.cat(intrinsics), image, eps2d)
    camera, gaussian = torch.nonzero((radii > 0).all(dim=-1), as_tuple=True)
    attributes = torch.cat([part[camera, gaussian].reshape(len(camera), -1) for part in parts], dim=-1)
    attributes = torch.cat([attributes, opacities[gaussian].unsqueeze(-1), colors[gaussian]], dim=-1)

    owner = camera // cameras
    sent, received = _splits(owner, world)
    offsets = counts.cumsum(0) - counts
    ids = torch.stack([camera % cameras, gaussian + offsets[owner]], dim=-1)
    ids, attributes, radii = (
        _exchange(rows, sent, received) for rows in (ids, attributes, radii[camera, gaussian])
    )
    mean2d, depth, conics, opacity, color = attributes.split([2, 1, 3, 1, 3], dim=-1)
    return ids[:, 0], ids[:, 1], radii, mean2d, depth.squeeze(-1), conics, opacity.squeeze(-1), color

import math

import torch
from torch.nn import functional


def build(size, world, draw):
    rows = size.M // world
    scale = draw.number(6.0, 10.0)
    bias = draw.number(-1.0, 1.0) - math.log(rows)  # a chunk's negatives weigh about as much as its positives
    axes = functional.normalize(draw.normal((2, size.D), torch.float32), dim=1)
    ranks = []
    for _ in range(world):
        # Every rank has a topic of its own: some pairs of ranks are close, others opposite.
        angle = draw.number(0.0, 2 * math.pi)
        topic = math.cos(angle) * axes[0] + math.sin(angle) * axes[1]
        noise = draw.normal((2, rows, size.D), torch.float32, std=size.D**-0.5)
        image = functional.normalize(draw.number(0.4, 0.8) * topic + noise[0], dim=1)
        text = functional.normalize(image + draw.number(0.6, 1.2) * noise[1], dim=1)
        ranks.append([image.to(torch.bfloat16), text.to(torch.bfloat16), scale, bias, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 58 + rank + 1000003 * trial)
        pair = [torch.randn(size.M // world, size.D, dtype=torch.bfloat16) for _ in range(2)]
        image, text = (functional.normalize(part, dim=1, eps=1e-12) for part in pair)
        ranks.append([image, text, 10.0, -10.0, None])
    return ranks

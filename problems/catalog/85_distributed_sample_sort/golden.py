import numpy as np
import torch


def golden(ranks, size, world, dtype):
    # bf16 is the upper half of fp32, so numpy sorts the very keys.
    keys = torch.cat([shard for shard, _ in ranks])
    ordered = np.sort(keys.float().cpu().numpy(), kind="stable")
    parts = np.array_split(ordered, world)
    return [torch.from_numpy(part.copy()).to(keys) for part in parts]

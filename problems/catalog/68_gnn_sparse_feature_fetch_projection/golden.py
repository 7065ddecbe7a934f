import torch


def golden(ranks, size, world, dtype):
    starts = torch.tensor([args[0].shape[0] for args in ranks]).cumsum(0).tolist()
    results = []
    for _, ids, proj, _, _ in ranks:
        features = torch.empty((ids.numel(), proj.shape[0]), dtype=dtype, device=proj.device)
        for (table, *_), end in zip(ranks, starts, strict=True):
            here = (ids >= end - table.shape[0]) & (ids < end)
            features[here] = table[ids[here] - end + table.shape[0]].to(dtype)
        results.append(features @ proj.to(dtype))
    return results

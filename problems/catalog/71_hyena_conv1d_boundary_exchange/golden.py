import torch


def golden(ranks, size, world, dtype):
    n, before = size.L // 2, size.K - 1
    chunks = [x[..., :n] for x, *_ in ranks] + [x[..., n:] for x, *_ in reversed(ranks)]
    whole = torch.cat(chunks, dim=-1)
    whole = torch.cat([torch.zeros_like(whole[..., :before]), whole], dim=-1).to(dtype)
    results = []
    for rank, (_, weight, _) in enumerate(ranks):
        parts = []
        for chunk in (rank, 2 * world - 1 - rank):
            window = whole[..., chunk * n : (chunk + 1) * n + before]
            taps = (window[..., j : j + n] * weight[:, :, j].to(dtype) for j in range(size.K))
            parts.append(sum(taps))
        results.append(torch.cat(parts, dim=-1))
    return results

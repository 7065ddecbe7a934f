import torch


def golden(ranks, size, world, dtype):
    image = torch.cat([args[0].to(dtype) for args in ranks], dim=2)
    padded = torch.nn.functional.pad(image, (size.p, size.p, size.p, size.p))
    results = []
    for rank, (_, weight, bias, _, _, _) in enumerate(ranks):
        total = 0.0 if bias is None else bias.to(dtype)[:, None, None]
        for dy in range(size.k):
            for dx in range(size.k):
                top = rank * size.h + dy
                patch = padded[0, :, top : top + size.h, dx : dx + size.w]
                total = total + torch.einsum("oc,cyx->oyx", weight[:, :, dy, dx].to(dtype), patch)
        results.append(total.unsqueeze(0))
    return results

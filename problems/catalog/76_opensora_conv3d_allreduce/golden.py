import torch


def golden(ranks, size, world, dtype):
    # All ranks' channels at once, as one matrix product over the windows.
    x = torch.cat([args[0] for args in ranks], dim=1).to(dtype)
    weight = torch.cat([args[1] for args in ranks], dim=1).to(dtype)
    bias = ranks[0][2]
    windows = x.unfold(2, size.k, 1).unfold(3, size.k, 1).unfold(4, size.k, 1)
    out = torch.stack(
        [torch.einsum("bcyxijk,ocijk->boyx", windows[:, :, t], weight) for t in range(windows.shape[2])],
        dim=2,
    )
    if bias is not None:
        out = out + bias.to(dtype).view(1, -1, 1, 1, 1)
    return [out for _ in ranks]

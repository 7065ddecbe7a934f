import torch


def golden(ranks, size, world, dtype):
    """The nearest of the 127 finite magnitudes of e4m3, looked up in a table."""
    table = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).to(dtype)
    x = torch.cat([tensor for tensor, _ in ranks])
    blocks = x.to(dtype).view(x.shape[0], -1, ranks[0][1])
    s = blocks.abs().amax(-1) / 448.0
    ratio = blocks.abs() / torch.where(s > 0, s, 1.0).unsqueeze(-1)

    below = torch.searchsorted(table, ratio, right=True).sub_(1).clamp_(0, 126)
    above = (below + 1).clamp(max=126)
    down, up = ratio - table[below], table[above] - ratio
    code = torch.where((up < down) | ((up == down) & (below % 2 == 1)), above, below)
    code = code.to(torch.uint8) | (torch.signbit(blocks).to(torch.uint8) << 7)
    y = code.view(x.shape).view(torch.float8_e4m3fn)
    return [(y, s) for _ in ranks]

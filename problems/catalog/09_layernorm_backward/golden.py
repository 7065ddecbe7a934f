import torch


def golden(ranks, size, world, dtype):
    X_hat = torch.cat([x for x, _ in ranks]).to(dtype)
    dY = torch.cat([dy for _, dy in ranks]).to(dtype)
    d_gamma = torch.einsum("ij,ij->j", X_hat, dY)
    d_beta = torch.ones(dY.shape[0], dtype=dtype) @ dY
    return [(d_gamma, d_beta) for _ in ranks]

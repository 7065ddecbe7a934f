import torch

SIMPLE = torch.tensor([[3.4445, -4.7750, 2.0315]] * 7, dtype=torch.float64)
QUINTIC = torch.tensor(
    [
        [4.0848, -6.8946, 2.9270],
        [3.9505, -6.3029, 2.6377],
        [3.7418, -5.5913, 2.3037],
        [2.8769, -3.1427, 1.2046],
        [2.8366, -3.0525, 1.2012],
    ],
    dtype=torch.float64,
)


def golden(ranks, size, world, dtype):
    # Every step is an odd polynomial of X, so it acts on the singular values alone.
    _, steps, kind, _, _ = ranks[0]
    whole = torch.cat([x.to(dtype) for x, *_ in ranks], dim=1)
    left, values, right = torch.linalg.svd(whole, full_matrices=False)
    values = values / torch.linalg.vector_norm(values)
    for a, b, c in (SIMPLE if kind == "simple" else QUINTIC)[:steps].tolist():
        values = a * values + b * values**3 + c * values**5
    return list((left * values @ right).split(size.c, dim=1))

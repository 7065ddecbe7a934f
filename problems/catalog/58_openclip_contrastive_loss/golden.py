import torch


def golden(ranks, size, world, dtype):
    texts = torch.cat([args[1] for args in ranks]).to(dtype)
    answers = []
    for rank, (image, _, scale, bias, _) in enumerate(ranks):
        rows = len(image)
        logits = scale * image.to(dtype) @ texts.T + bias
        # -log sigmoid(-x) = log(1 + e^x), and a positive has -x instead: log(1 + e^-x) = log(1 + e^x) - x.
        every = torch.logaddexp(logits, torch.zeros_like(logits)).sum()
        own = logits[:, rank * rows : (rank + 1) * rows].diagonal().sum()
        answers.append((every - own) / rows)
    return answers

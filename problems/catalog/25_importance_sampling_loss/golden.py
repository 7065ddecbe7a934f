import torch


def _tokens(args, dtype):
    """Of one rank: mask of valid tokens, and per token log-probability, d and loss."""
    hidden, weight, labels, old, advantages, ignore = args
    valid = labels != ignore
    lp = torch.zeros(labels.shape, dtype=dtype)
    logits = hidden[valid].to(dtype) @ weight.to(dtype).T
    lp[valid] = torch.log_softmax(logits, -1).gather(1, labels[valid].unsqueeze(1)).squeeze(1)
    d = torch.where(valid, lp - old.to(dtype), 0.0).clamp(-20, 20)
    pg = torch.where(valid, -d.exp() * advantages.to(dtype), 0.0)
    return valid, lp, d, pg


def golden(ranks, size, world, dtype):
    tokens = [_tokens(args, dtype) for args in ranks]
    valid = torch.cat([item[0] for item in tokens])
    lp, d, pg = (torch.cat([item[i] for item in tokens])[valid] for i in (1, 2, 3))
    q = d.exp()
    metrics = torch.stack([q.mean(), q.min(), q.max(), (torch.expm1(d) - d).mean(), -lp.mean()])
    return [(pg.mean(), None, item[1], item[3], metrics) for item in tokens]

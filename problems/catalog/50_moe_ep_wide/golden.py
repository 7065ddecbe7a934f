import torch


def golden(ranks, size, world, dtype):
    experts, top_k = ranks[0][6:8]
    x = torch.cat([args[0] for args in ranks]).to(dtype)
    # share[token, rank]: with what weight the rank's network enters the token's result
    share = x.new_zeros((x.shape[0], world))
    for rank, (part, args) in enumerate(zip(x.chunk(world), ranks, strict=True)):
        probs = _chosen(part, args[1].to(dtype), args[2].to(dtype), top_k)
        for expert in range(experts):
            share.chunk(world)[rank][:, expert * world // experts] += probs[:, expert]
    out = torch.zeros_like(x)
    for owner, args in enumerate(ranks):
        rows = share[:, owner].nonzero().squeeze(1)
        out[rows] += share[rows, owner, None] * _mlp(args[3:6], x[rows])
    return list(out.chunk(world))


def _chosen(x, weight, bias, top_k):
    logits = x @ weight.T + bias
    probs = (logits - logits.logsumexp(1, keepdim=True)).exp()
    least = probs.sort(1, descending=True).values[:, top_k - 1 : top_k]
    return torch.where(probs >= least, probs, 0.0)


def _mlp(layers, x):
    gate, up, down = ((part.leaves["weight"].to(x), part.leaves["bias"].to(x)) for part in layers)
    opened = x @ gate[0].T + gate[1]
    return (opened / (1 + torch.exp(-opened)) * (x @ up[0].T + up[1])) @ down[0].T + down[1]

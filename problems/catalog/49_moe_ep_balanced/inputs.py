import torch

from problems.leaves import Made


def _experts(world):
    """(num_experts, top_k)"""
    return world, 2


def _scores(size, experts, draw, liked):
    """Target logits of every token: a random order of the experts, 0.3 to 0.5 apart.

    Top-k is then the same however a solution rounds, and every chosen weight counts.
    """
    noise = draw.uniform((size.M, experts), 0.0, 1.0, torch.float64)
    place = (noise + liked).argsort(1).argsort(1).double()
    steps = 0.4 * place + draw.uniform((size.M, experts), -0.05, 0.05, torch.float64)
    return steps - steps.mean(1, keepdim=True)


def _tokens(size, weight, bias, scores, draw):
    """Random hidden states, moved the least way so that their logits are `scores`."""
    hidden = draw.normal((size.M, size.N), torch.float32)
    weight = weight.float()
    miss = scores.float() - (hidden @ weight.T + bias.float())
    return (hidden + torch.linalg.solve(weight @ weight.T, miss.T).T @ weight).to(torch.bfloat16)


def _linear(draw, rows, columns):
    weight = draw.normal((rows, columns), torch.bfloat16, std=columns**-0.5)
    return Made("linear", {"weight": weight, "bias": draw.normal((rows,), torch.bfloat16, std=0.3)})


def build(size, world, draw):
    experts, top_k = _experts(world)
    if experts > top_k:
        top_k += draw.integer(-1, 2)
    # How popular each expert is, the same taste on all ranks; now and then nobody wants one.
    liked = draw.uniform((experts,), 0.0, 0.8, torch.float64)
    if draw.integer(0, 3) == 0:
        liked[draw.integer(0, experts)] -= 2.0
    ranks = []
    for _ in range(world):
        weight = draw.normal((experts, size.N), torch.bfloat16, std=size.N**-0.5)
        bias = draw.normal((experts,), torch.bfloat16, std=0.5)
        hidden = _tokens(size, weight, bias, _scores(size, experts, draw, liked), draw)
        shapes = ((size.I, size.N), (size.I, size.N), (size.N, size.I))
        mlp = [_linear(draw, *shape) for shape in shapes]
        ranks.append([hidden, weight, bias, *mlp, experts, top_k, None])
    return ranks


def upstream(size, world, trial):
    experts, top_k = _experts(world)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 49 + rank + 1000003 * trial)
        shapes = ((size.M, size.N), (experts, size.N), (experts,))
        tensors = [torch.randn(shape, dtype=torch.bfloat16) for shape in shapes]
        mlp = []
        for fan_in, fan_out in ((size.N, size.I), (size.N, size.I), (size.I, size.N)):
            linear = torch.nn.Linear(fan_in, fan_out).to(torch.bfloat16)
            leaves = {"weight": linear.weight.detach(), "bias": linear.bias.detach()}
            mlp.append(Made("linear", leaves))
        ranks.append([*tensors, *mlp, experts, top_k, None])
    return ranks

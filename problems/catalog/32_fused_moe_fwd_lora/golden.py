import torch


def golden(ranks, size, world, dtype):
    networks = [_network(args[3:6], args[6:12], dtype) for args in ranks]
    return [_layer(args, networks, world, dtype) for args in ranks]


def _layer(args, networks, world, dtype):
    """All experts of a token where the token is: no rows travel. Decisions are far from ties."""
    x, gate, bias = (part.to(dtype) for part in args[:3])
    experts, top_k = args[12:14]
    probabilities = (x @ gate.T + bias).softmax(-1)
    limit = probabilities.sort(-1, descending=True).values[:, top_k - 1 : top_k]
    weights = probabilities * (probabilities >= limit)
    by_owner = weights.view(len(x), world, experts // world).sum(-1)
    return sum(by_owner[:, owner, None] * networks[owner](x) for owner in range(world))


def _network(modules, adapters, dtype):
    """Each adapter is folded into its weight: W + B A."""
    weights = []
    for module, down, up in zip(modules, adapters[0::2], adapters[1::2], strict=True):
        weights.append(module.leaves["weight"].to(dtype) + up.to(dtype) @ down.to(dtype))
    gate, up, down = weights
    gate_bias, up_bias, down_bias = (module.leaves["bias"].to(dtype) for module in modules)

    def run(v):
        z = v @ gate.T + gate_bias
        return (z / (1 + torch.exp(-z)) * (v @ up.T + up_bias)) @ down.T + down_bias

    return run

import torch

from problems import routing
from problems.leaves import Made


def _logits(size, top_k, draw, weights):
    """(M, E): the top_k lie 0.3 to 0.5 apart, the others below them, in each token's own order."""
    order = routing.preferences(draw, size.M, weights)
    place = torch.arange(size.E, dtype=torch.float64)
    levels = torch.where(place < top_k, 0.4 * (top_k - place), -draw.uniform(size.E, 0.1, 1.5).double())
    jitter = draw.uniform((size.M, size.E), -0.05, 0.05, torch.float64)
    return torch.zeros(size.M, size.E, dtype=torch.float64).scatter_(1, order, levels + jitter)


def _router(size, draw):
    """Rows at right angles and of length 1, so that no token has to move far for its logits."""
    rows = torch.linalg.qr(draw.normal((size.H, size.E), torch.float32)).Q.T
    return rows.contiguous().to(torch.bfloat16)


def _tokens(size, draw, gate, bias, logits):
    """Random hidden states, moved by as little as it takes to give these logits."""
    hidden, gate = draw.normal((size.M, size.H), torch.float32).double(), gate.double()
    wrong = logits - (hidden @ gate.T + bias.double())
    return (hidden + wrong @ torch.linalg.pinv(gate).T).to(torch.bfloat16)


def _linear(draw, rows, columns):
    weight = draw.normal((rows, columns), std=columns**-0.5)
    return Made("linear", {"weight": weight, "bias": draw.normal(rows, std=0.3)})


def _adapter(draw, rows, columns, rank):
    """A (rank, columns) and B (rows, rank), scaled so that the adapter counts about half as much as its layer."""
    return [draw.normal((rank, columns), std=columns**-0.5), draw.normal((rows, rank), std=0.5 * rank**-0.5)]


def build(size, world, draw):
    weights = routing.popularity(draw, size.E)
    top_k = size.K + draw.integer(-1, 2)
    ranks = []
    for _ in range(world):
        gate = _router(size, draw)
        bias = draw.normal(size.E, std=0.5)
        hidden = _tokens(size, draw, gate, bias, _logits(size, top_k, draw, weights))
        network = [
            _linear(draw, size.I, size.H),
            _linear(draw, size.I, size.H),
            _linear(draw, size.H, size.I),
        ]
        adapters = [
            *_adapter(draw, size.I, size.H, size.r),
            *_adapter(draw, size.I, size.H, size.r),
            *_adapter(draw, size.H, size.I, size.r),
        ]
        ranks.append([hidden, gate, bias, *network, *adapters, size.E, top_k, None])
    return ranks


def _default_linear(columns, rows):
    module = torch.nn.Linear(columns, rows)
    weight, bias = module.weight.detach(), module.bias.detach()
    return Made("linear", {"weight": weight.to(torch.bfloat16), "bias": bias.to(torch.bfloat16)})


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 32 + rank + 1000003 * trial)
        shapes = [(size.M, size.H), (size.E, size.H), (size.E,)]
        tensors = [torch.randn(shape, dtype=torch.bfloat16) for shape in shapes]
        layers = [(size.H, size.I), (size.H, size.I), (size.I, size.H)]
        network = [_default_linear(*layer) for layer in layers]
        shapes = []
        for columns, rows in layers:
            shapes += [(size.r, columns), (rows, size.r)]
        adapters = [torch.randn(shape, dtype=torch.bfloat16) for shape in shapes]
        ranks.append([*tensors, *network, *adapters, size.E, size.K, None])
    return ranks

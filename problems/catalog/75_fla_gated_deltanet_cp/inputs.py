import torch


def build(size, world, draw):
    heads = -(-size.H // world) * world
    tokens = (size.Bt, size.s, heads)
    a_log = draw.uniform((heads,), -0.3, 0.3, torch.bfloat16).split(heads // world)
    dt_bias = draw.uniform((heads,), -0.5, 0.5, torch.bfloat16).split(heads // world)
    shift = draw.uniform((1, 1, heads), 2.5, 5.0)
    ranks = []
    for rank in range(world):
        q, k = draw.normal((*tokens, size.K)), draw.normal((*tokens, size.K))
        v = draw.normal((*tokens, size.V))
        gate = (draw.normal(tokens, torch.float32) - shift).to(torch.bfloat16)
        beta = draw.uniform(tokens, 0.1, 1.0, torch.bfloat16)
        ranks.append([q, k, v, gate, beta, a_log[rank].clone(), dt_bias[rank].clone(), None])
    return ranks


def upstream(size, world, trial):
    heads = -(-size.H // world) * world
    tokens = (size.Bt, size.s, heads)
    a_log = torch.linspace(0.0, 0.2, heads, dtype=torch.bfloat16).split(heads // world)
    dt_bias = torch.linspace(-0.1, 0.1, heads, dtype=torch.bfloat16).split(heads // world)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 75 + rank + 1000003 * trial)
        q, k = (torch.randn(*tokens, size.K, dtype=torch.bfloat16) for _ in range(2))
        v = torch.randn(*tokens, size.V, dtype=torch.bfloat16)
        gate = torch.randn(*tokens, dtype=torch.bfloat16)
        beta = torch.randn(*tokens, dtype=torch.bfloat16).sigmoid()
        ranks.append([q, k, v, gate, beta, a_log[rank].clone(), dt_bias[rank].clone(), None])
    return ranks

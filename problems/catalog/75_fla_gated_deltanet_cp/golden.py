import torch

CHUNK = 32


def _delta_rule(q, k, v, log_decay, beta):
    """Outputs of the gated delta rule, chunk by chunk: inside a chunk a triangular system, not a recurrence.

    q, k: (N, T, K); v: (N, T, V); log_decay: (N, T, K or 1); beta: (N, T, 1).
    """
    state = torch.zeros_like(k[:, :1]).mT * torch.zeros_like(v[:, :1])
    parts = []
    for start in range(0, q.shape[1], CHUNK):
        now = slice(start, start + CHUNK)
        kc, bc, total = k[:, now], beta[:, now], log_decay[:, now].cumsum(1)
        # decay[t, i]: what is left at t of what was written at i.
        decay = (total[:, :, None] - total[:, None]).clamp(max=0).exp()
        kk = (kc[:, :, None] * decay * kc[:, None]).sum(-1).tril(-1)
        qk = (q[:, now, None] * decay * kc[:, None]).sum(-1).tril()
        known = bc * (v[:, now] - (kc * total.exp()) @ state)
        system = bc * kk + torch.eye(kc.shape[1], dtype=q.dtype, device=q.device)
        written = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)
        parts.append((q[:, now] * total.exp()) @ state + qk @ written)
        last = total[:, -1:]
        state = last.exp().mT * state + (kc * (last - total).exp()).mT @ written
    return torch.cat(parts, dim=1)


def golden(ranks, size, world, dtype):
    q, k, v, gate, beta = (
        torch.cat([args[i] for args in ranks], dim=1).to(dtype).transpose(1, 2).flatten(0, 1)
        for i in range(5)
    )
    rate, bias = (
        torch.cat([args[i] for args in ranks]).to(dtype).repeat(size.Bt).unsqueeze(-1) for i in (5, 6)
    )
    log_decay = -rate.exp() * torch.log1p(torch.exp(gate + bias))
    q = torch.nn.functional.normalize(q, dim=-1, eps=1e-6) / size.K**0.5
    k = torch.nn.functional.normalize(k, dim=-1, eps=1e-6)
    o = _delta_rule(q, k, v, log_decay.unsqueeze(-1), beta.unsqueeze(-1))
    return list(o.unflatten(0, (size.Bt, -1)).transpose(1, 2).chunk(world, dim=1))

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


def _sequence(members, size, dtype):
    """Outputs (Bt, T, H, V) over the joined tokens of one context-parallel group."""
    q, k, v, g, beta = (
        torch.cat([args[i] for args in members], dim=1).to(dtype).transpose(1, 2).flatten(0, 1)
        for i in range(5)
    )
    slope = members[0][5].to(dtype).exp().repeat(size.Bt).view(-1, 1, 1)
    bias = members[0][6].to(dtype).view(size.H, 1, size.K).repeat(size.Bt, 1, 1)
    log_decay = -5.0 * torch.sigmoid(slope * (g + bias))
    q = torch.nn.functional.normalize(q, dim=-1) / size.K**0.5
    k = torch.nn.functional.normalize(k, dim=-1)
    o = _delta_rule(q, k, v, log_decay, torch.sigmoid(beta).unsqueeze(-1))
    return o.unflatten(0, (size.Bt, size.H)).transpose(1, 2)


def golden(ranks, size, world, dtype):
    lanes = 2 if world >= 4 and world % 2 == 0 else 1
    total = sum(_sequence(ranks[lane::lanes], size, dtype) for lane in range(lanes))
    return [total[:, (rank // lanes) * size.s :][:, : size.s] for rank in range(world)]

import torch
import torch.distributed as dist


def solution(lengths, values, key_splits, batch_size, pg=None, weights=None, stride_per_key=None, stagger=1):
    W, r = dist.get_world_size(pg), dist.get_rank(pg)
    gathered = [None] * W
    dist.all_gather_object(gathered, (lengths, values, batch_size, weights, stride_per_key), group=pg)
    m = W // stagger
    order = [x + m * y for x in range(m) for y in range(stagger)]
    first = sum(key_splits[:r])
    feats = range(first, first + key_splits[r])
    cut = []
    for L, V, B, Wt, SPK in gathered:
        strides = SPK if SPK is not None else [B] * sum(key_splits)
        ls = L.split(strides)
        vs = V.split([int(a.sum()) for a in ls])
        ws = Wt.split([int(a.sum()) for a in ls]) if Wt is not None else None
        cut.append((ls, vs, ws, strides))
    out = {
        "lengths": torch.cat([lengths[:0]] + [cut[s][0][f] for f in feats for s in order]),
        "values": torch.cat([values[:0]] + [cut[s][1][f] for f in feats for s in order]),
    }
    if weights is not None:
        out["weights"] = torch.cat([weights[:0]] + [cut[s][2][f] for f in feats for s in order])
    if stride_per_key is None:
        sizes = torch.tensor([g[2] for g in gathered])
        out["stride"], out["stride_per_rank"] = sizes.sum(), sizes
    else:
        out["stride_per_key_per_rank"] = torch.tensor(
            [[cut[s][3][f] for s in order] for f in feats], dtype=torch.int64).view(len(feats), W)
    return out

import torch


def _features(args):
    """One rank's data as a list over features of (stride, lengths, values, weights or None)."""
    lengths, values, splits, batch, _, weights, strides, _ = [*args, None, None, 1][:8]
    strides = strides or [batch] * sum(splits)
    found, bag, start = [], 0, 0
    for stride in strides:
        sizes = lengths[bag : bag + stride]
        end = start + int(sizes.sum())
        found.append((stride, sizes, values[start:end], None if weights is None else weights[start:end]))
        bag, start = bag + stride, end
    return found


def golden(ranks, size, world, dtype):
    splits = ranks[0][2]
    weighted, per_key, stagger = [*ranks[0], None, None, 1][5:8]
    sources = [_features(args) for args in ranks]
    batches = torch.tensor([args[3] for args in ranks])
    order = torch.arange(world).view(stagger, -1).T.flatten().tolist()
    results, first = [], 0
    for owned in splits:
        mine = [sources[s][f] for f in range(first, first + owned) for s in order]
        first += owned
        result = {"lengths": [ranks[0][0][:0]] + [piece[1] for piece in mine]}
        result["values"] = [ranks[0][1][:0]] + [piece[2] for piece in mine]
        if weighted is not None:
            result["weights"] = [weighted[:0]] + [piece[3] for piece in mine]
        result = {name: torch.cat(pieces) for name, pieces in result.items()}
        if per_key is None:
            result |= {"stride": batches.sum(), "stride_per_rank": batches}
        else:
            table = torch.tensor([piece[0] for piece in mine], dtype=torch.int64)
            result["stride_per_key_per_rank"] = table.view(owned, world)
        results.append(result)
    return results

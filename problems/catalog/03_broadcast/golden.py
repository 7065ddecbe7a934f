def golden(ranks, size, world, dtype):
    source = ranks[0][1] if len(ranks[0]) > 1 else 0
    return [ranks[source][0].clone() for _ in ranks]

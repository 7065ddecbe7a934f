def golden(ranks, size, world, dtype):
    source = ranks[0][1] if len(ranks[0]) > 1 else 0
    return [piece.clone() for piece in ranks[source][0].unbind(0)]

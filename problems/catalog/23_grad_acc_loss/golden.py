def golden(ranks, size, world, dtype):
    counts = [args[1].to(dtype) for args in ranks]
    n = ranks[0][2].to(dtype)
    with_tokens = [rank for rank in range(world) if counts[rank] > 0]
    loss_sum = sum((ranks[rank][0].to(dtype) * counts[rank] for rank in with_tokens), n * 0)
    answers = []
    for rank, args in enumerate(ranks):
        slope = args[3].to(dtype) / n
        if args[4] is not None:
            slope = slope + args[4].to(dtype)
        answers.append((loss_sum / n, loss_sum, slope * counts[rank]))
    return answers

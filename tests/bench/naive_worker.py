"""One rank of the naive protocol: what a published script's worker does. Run by torchrun; see bench_pipeline.

    torchrun --nproc-per-node 4 naive_worker.py SOLUTION SLUG SIZE SEED CALLS OUT

Makes the inputs, calls `solution`, times CALLS calls after a fifth as many to warm up; rank 0 leaves its answer in OUT.
"""

from __future__ import annotations

import importlib.util
import sys
import time

import torch
import torch.distributed as dist

from evaluator.harness import encode, gate
from evaluator.harness.rank import gloo_compat
from evaluator.harness.rank.recipe import Decoder, reader
from problems.registry import load_problem


def main() -> None:
    """Everything of one rank, from nothing."""
    path, slug, size, seed, calls, out = sys.argv[1:]
    torch.set_num_threads(1)
    gloo_compat.install()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    problem = load_problem(slug)
    groups = {None: dist.group.WORLD, **{tuple(g): dist.new_group(list(g)) for g in problem.groups(world)}}
    packed = encode.pack(gate.build(problem, size, world, int(seed), 0)[rank])
    buffer = bytearray(packed.nbytes)
    encode.write(packed, torch.frombuffer(buffer, dtype=torch.uint8))
    spec = importlib.util.spec_from_file_location("solution", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    decoder = Decoder(reader(memoryview(buffer)), groups)

    def call() -> object:
        return module.solution(*[decoder.decode(node) for node in packed.recipe])

    answer = call()
    for number in range(int(calls) * 6 // 5):
        if number == int(calls) // 5:
            dist.barrier()
            began = time.perf_counter()
        call()
    seconds = (time.perf_counter() - began) / int(calls) if int(calls) else 0.0
    if rank == 0:
        torch.save({"answer": answer, "seconds": seconds}, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

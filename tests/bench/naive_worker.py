"""One rank of the naive protocol: what a published script's worker does. Run by torchrun; see bench_pipeline.

    torchrun --nproc-per-node 4 naive_worker.py SOLUTION SLUG SIZE SEED CALLS OUT DEVICE

Makes the inputs, calls `solution`, times CALLS calls after a fifth as many to warm up; rank 0 leaves its answer in OUT.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from functools import partial

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map

from evaluator.harness import encode, gate
from evaluator.harness.rank import gloo_compat
from evaluator.harness.rank.recipe import Decoder, reader
from problems.registry import load_problem


def main() -> None:
    """Everything of one rank, from nothing."""
    path, slug, size, seed, calls, out, kind = sys.argv[1:]
    torch.set_num_threads(1)
    place = None
    if kind == "cuda":
        card = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(card)
        dist.init_process_group("nccl", device_id=card)
        place = partial(torch.Tensor.to, device=card)
    else:
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
    decoder = Decoder(reader(memoryview(buffer)), groups, place=place)
    args = [decoder.decode(node) for node in packed.recipe]

    def call() -> object:
        return module.solution(*(args if place else [decoder.decode(node) for node in packed.recipe]))

    answer = call()
    for number in range(int(calls) * 6 // 5):
        if number == int(calls) // 5:
            settle(place is not None)
            dist.barrier()
            began = time.perf_counter()
        call()
    settle(place is not None)
    seconds = (time.perf_counter() - began) / int(calls) if int(calls) else 0.0
    if rank == 0:
        saved = tree_map(lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf, answer)
        torch.save({"answer": saved, "seconds": seconds}, out)
    dist.destroy_process_group()


def settle(on_card: bool) -> None:
    """Wait for the card."""
    if on_card:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()

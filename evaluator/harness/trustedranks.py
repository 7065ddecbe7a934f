"""N gloo ranks for code that we wrote ourselves: the gate runs references here, without a sandbox.

One pool serves any number of problems: the ranks are forked once, and arguments travel through the
same recipe that the judge uses.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist

from evaluator.harness import encode
from evaluator.harness.localcomm import no_communication
from evaluator.harness.rank import gloo_compat
from evaluator.harness.rank.recipe import Decoder, reader
from problems.leaves import Answer, map_tensors
from problems.registry import Problem, _module

ENDS_S = 5.0
"""How long a rank that is told to end may take."""


class RankFailed(RuntimeError):
    """A rank raised; the message holds its traceback."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Rank:
    """What runs in a forked rank."""

    def __init__(self, rank: int, world_size: int, port: int) -> None:
        torch.set_num_threads(1)
        os.environ.update(
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(world_size),
            LOCAL_WORLD_SIZE=str(world_size),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            GLOO_SOCKET_IFNAME="lo",
        )
        gloo_compat.install()
        dist.init_process_group("gloo")
        self.world_size = world_size
        self.groups: dict[tuple[int, ...] | None, Any] = {None: dist.group.WORLD}

    def call(self, task: dict[str, Any]) -> Answer:
        for ranks in task["groups"]:
            if ranks not in self.groups:
                self.groups[ranks] = dist.new_group(list(ranks))
        factories = _module(Path(task["factories"])) if task["factories"] else None
        buffer = memoryview(bytearray(task["buffer"]))
        decoder = Decoder(reader(buffer), self.groups, factories)
        args = [decoder.decode(node) for node in task["recipe"]]
        solution = _module(Path(task["solution"])).solution
        if task["local"]:
            with no_communication():
                output = solution(*args)
        else:
            output = solution(*args)
        inout = {name: args[index] for index, name in task["inout"]}
        return Answer(_portable(output), {k: _portable(v) for k, v in inout.items()})


def _portable(tree: Any) -> Any:
    return map_tensors(tree, lambda t: (t.to_dense() if t.is_sparse else t).detach().clone())


def _serve(rank: int, world_size: int, port: int, pipe: Connection) -> None:
    me = _Rank(rank, world_size, port)
    while (task := pipe.recv()) is not None:
        try:
            pipe.send(("ok", me.call(task)))
        except Exception:  # noqa: BLE001 (whatever the code raises is told to the caller)
            pipe.send(("error", traceback.format_exc()))


class TrustedRanks:
    """A pool of `world_size` gloo ranks; a context manager."""

    def __init__(self, world_size: int = 4) -> None:
        self.world_size = world_size
        context = multiprocessing.get_context("fork")
        port = _free_port()
        self._pipes: list[Connection] = []
        self._ranks: list[Any] = []
        for rank in range(world_size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, world_size, port, theirs), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._ranks.append(process)

    def __enter__(self) -> TrustedRanks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in self._pipes:
            with suppress(OSError):  # it ended before
                pipe.send(None)
            pipe.close()
        for process in self._ranks:
            process.join(ENDS_S)  # by itself it removes its temporary folder
            process.kill()
            process.join()

    def call(
        self,
        problem: Problem,
        ranks_args: list[list[Any]],
        *,
        solution: Path | None = None,
        communicate: bool = True,
        timeout: float = 120.0,
    ) -> list[Answer]:
        """Run the problem's reference (or another file of ours) once on all ranks.

        Raises RankFailed when a rank raised or no answer came in `timeout` seconds.
        """
        factories = problem.folder / "factories.py"
        inout = [(i, a.name) for i, a in enumerate(problem.arguments) if a.role == "inout"]
        for pipe, args in zip(self._pipes, ranks_args, strict=True):
            packed = encode.pack(args)
            flat = torch.zeros(max(packed.nbytes, 1), dtype=torch.uint8)
            encode.write(packed, flat)
            pipe.send(
                {
                    "recipe": packed.recipe,
                    "buffer": flat.numpy().tobytes(),
                    "groups": problem.groups(self.world_size),
                    "factories": str(factories) if factories.exists() else "",
                    "solution": str(solution or problem.folder / "reference.py"),
                    "inout": [item for item in inout if item[0] < len(args)],
                    "local": not communicate,
                }
            )
        answers: list[Answer] = []
        errors: list[str] = []
        for rank, pipe in enumerate(self._pipes):
            if not pipe.poll(timeout):
                raise RankFailed(f"{problem.slug}: rank {rank} gave no answer in {timeout:.0f} s")
            state, value = pipe.recv()
            if state == "ok":
                answers.append(value)
            else:
                errors.append(f"rank {rank}: {value}")
        if errors:
            raise RankFailed(f"{problem.slug}: {errors[0]}")
        return answers

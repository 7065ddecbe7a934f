"""One job: N ranks of one file in one sandbox, driven call by call from outside.

The supervisor owns the clock. A turn is: inputs in place and outputs poisoned while the ranks are
frozen → stamp → thaw → last rank's done → stamp → glance → copy out → freeze → second look
(design section 5).
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from evaluator.harness import claims, encode
from evaluator.harness.channel import channel
from evaluator.harness.errors import JudgeFault
from evaluator.harness.glance import Glance
from evaluator.harness.lettinggo import LettingGo
from evaluator.harness.plainbox import PlainBox
from evaluator.harness.reports import Spans, spans
from evaluator.harness.sandbox.layout import host_layout
from evaluator.harness.sandbox.logs import CappedLog, clean_text
from evaluator.harness.sandbox.processes import resident_peak
from evaluator.harness.slots import Place, Slot
from evaluator.harness.talk import Talk
from evaluator.harness.warm import Template, base_env
from problems.leaves import tensors
from problems.registry import Problem

ADDRESS_SLACK = 512 << 20
"""What a rank maps without touching it: torch's libraries, stacks and arenas of its threads."""
MAX_SEEN = 4 << 20
PARTS_S = 10.0
DRIVER_CORES = 2


@dataclass
class Turn:
    """One call of all ranks: raw seconds by the outside clock, claims and output bytes per rank."""

    seconds: float
    claims: list[Any]
    outputs: list[torch.Tensor]
    inout: list[dict[str, Any]]
    changed: list[int | None]
    late: list[bool]
    unfinished: list[str | None]
    """Per rank the first inout argument that still changed after done."""
    shared: list[list[tuple[str, int]]] = field(default_factory=list)
    """Per rank (path of an output, index of the argument in whose memory it lies)."""
    spans: list[Spans | None] = field(default_factory=list)
    """Per rank what its own clock says."""
    built_late: bool = False


def shares(cores: list[int], ranks: int) -> list[list[int]]:
    """The cores of each rank: an equal run of them, or one that several ranks share when there are too few."""
    each = max(1, len(cores) // ranks)
    return [[cores[(rank * each + i) % len(cores)] for i in range(each)] for rank in range(ranks)]


class Job(Talk):
    """A started job. `role` is "reference" or "submission"; both are treated alike."""

    def __init__(
        self,
        template: Template,
        problem: Problem,
        role: str,
        files: dict[str, bytes],
        inputs_bytes: int,
        outputs_bytes: int,
        *,
        record: bool = False,
        held: bool = False,
    ) -> None:
        """`record`: one rank that only notes builds down. `held`: ranks wait for `start` with the file's import."""
        super().__init__(template, 1 if record else template.target.ranks)
        self.problem, self.role = problem, role
        self._record, self._held = record, held
        self.log = CappedLog()
        self._make_slots(inputs_bytes, outputs_bytes)
        self._sent_recipe: list[Any] = [None] * self.world_size
        self._resident = 0
        self.letting_go = LettingGo(self.box.memory_now, self.box.cpu_now)
        self._written = [0] * self.world_size
        self._pattern = torch.randint(0, 256, (1 << (22 if outputs_bytes >> 24 else 16),), dtype=torch.uint8)
        names = enumerate(problem.arguments)
        self._kept = frozenset(i for i, a in names if a.role in ("dynamic", "static"))
        self._inout = {i: a.name for i, a in enumerate(problem.arguments) if a.role == "inout"}
        for name, content in files.items():
            template.put(name, content)
        self.log.add("sandbox stdout", self.box.stdout.fileno())
        self.log.add("sandbox stderr", self.box.stderr.fileno())
        self._launch("factories.py" in files)

    def _make_slots(self, inputs_bytes: int, outputs_bytes: int) -> None:
        """What every rank shares with us; calls travel by `ins` and `outs`."""
        self.inputs = [Slot(f"in{r}", inputs_bytes) for r in range(self.world_size)]
        self.outputs = [Slot(f"out{r}", outputs_bytes) for r in range(self.world_size)]
        self.ins: Sequence[Place] = self.inputs
        self.outs: Sequence[Place] = self.outputs

    def _more_fds(self, rank: int) -> list[int]:
        """Further descriptors for a rank, closed here once they were passed."""
        return []

    def _launch(self, factories: bool) -> None:
        """Hand the ranks' descriptors to the template, which forks them."""
        passed: list[int] = []
        ours_no_more: list[int] = []
        theirs: list[socket.socket] = []
        for rank in range(self.world_size):
            ours, peer = channel()
            self.sockets.append(ours)
            theirs.append(peer)
            out_read, out_write = os.pipe()
            err_read, err_write = os.pipe()
            stack_read, stack_write = os.pipe()
            os.set_blocking(stack_read, False)
            self._stack_pipes[stack_read] = rank
            for name, end in (("stdout", out_read), ("stderr", err_read)):
                self.log.add(f"rank {rank} {name}", end)
                os.close(end)
            passed += [peer.fileno(), self.inputs[rank].fd, self.outputs[rank].fd]
            more = self._more_fds(rank)
            passed += [out_write, err_write, stack_write, *more]
            ours_no_more += [out_write, err_write, stack_write, *more]
        order = json.dumps(self._order(factories)).encode()
        socket.send_fds(self.template.control, [order], passed)
        for peer in theirs:
            peer.close()
        for descriptor in ours_no_more:
            os.close(descriptor)
        for slot in (*self.inputs, *self.outputs):
            slot.close_fd()
        self._listen()

    def _order(self, factories: bool) -> dict[str, Any]:
        plain = isinstance(self.box, PlainBox)
        prefix = sys.prefix if plain else "/opt/pkb/venv"
        env = base_env(self.target, prefix)
        if isinstance(self.box, PlainBox):
            work = str(self.box.folder / "work")
            env.update(HOME=work, TMPDIR=work, TORCH_EXTENSIONS_DIR=f"{work}/ext", **self.box.marks)
        world = str(self.world_size)
        env.update(
            WORLD_SIZE=world,
            LOCAL_WORLD_SIZE=world,
            GROUP_WORLD_SIZE="1",
            ROLE_WORLD_SIZE=world,
            ROLE_NAME="default",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(_free_port()) if plain else "29500",
            TORCHELASTIC_RESTART_COUNT="0",
            TORCHELASTIC_MAX_RESTARTS="0",
            TORCHELASTIC_RUN_ID="none",
        )
        return {
            "t": "fork",
            "world_size": self.world_size,
            "backend": self.target.backend,
            "threads": self.target.threads_per_rank,
            "cores": self._cores(),
            "device": self.target.cards,
            "groups": [list(ranks) for ranks in self.problem.groups(self.world_size)],
            "factories": factories,
            "inout": sorted(self._inout),
            "record": self._record,
            "held": self._held,
            "address_space": self._address_space(),
            "job_folder": str(self.template.job_folder) if plain else "/job",
            "cwd": env["HOME"],
            "inputs_bytes": self.inputs[0].nbytes,
            "outputs_bytes": self.outputs[0].nbytes,
            "env": env,
        }

    def _cores(self) -> list[list[int]]:
        """Where each rank is held; on cards no more than its threads and the driver's need, the same for both jobs."""
        held = shares(sorted(os.sched_getaffinity(0)), self.world_size)
        if self.target.device == "cpu":
            return held
        return [cores[: self.target.threads_per_rank + DRIVER_CORES] for cores in held]

    def join(self, limit_s: float) -> None:
        """Of a held job: wait until every rank is in its process groups; then freeze. Nothing of the file has run."""
        self._collect("joined", "import", limit_s)
        self._freeze("import")

    def start(self, limit_s: float, should_stop: Callable[[], bool] | None = None) -> None:
        """Wait until every rank has imported the file; then freeze. JobFailed when one can't."""
        if self._held:
            for rank in range(self.world_size):
                self._send(rank, {"t": "import"})
            self._build_until = None  # what has passed until here was not spent on builds
            self.box.thaw()
        self._collect("ready", "import", limit_s, should_stop)
        self._freeze("import")

    def _address_space(self) -> int | None:
        """What a rank may map beside torch where the host has no memory group: its share of the job's.

        Cards map too much for a limit.
        """
        if self.target.device != "cpu" or "memory" in host_layout().places:
            return None
        return self.target.limits["memory_bytes"] // self.world_size + ADDRESS_SLACK

    def recorded_units(
        self, limit_s: float, should_stop: Callable[[], bool] | None = None
    ) -> tuple[list[Any], str]:
        """What a recording job says that it noted down: build units, and what ended the import, if anything."""
        (message,) = self._collect("ready", "import", limit_s, should_stop)
        size, note = message.get("nbytes"), message.get("note")
        told = clean_text(note.encode("utf-8", "replace")) if isinstance(note, str) else ""
        if type(size) is not int or not 0 <= size <= self.outputs[0].nbytes:
            return [], told
        try:
            units = json.loads(bytes(self.outputs[0].buffer[:size]))
        except (ValueError, RecursionError):
            return [], told
        return (units if isinstance(units, list) else []), told

    def call(self, packed: list[encode.Packed], limit_s: float, phase: str) -> Turn:
        """One turn of all ranks on the given arguments. Leaves the ranks frozen."""
        self._sequence += 1
        for rank, item in enumerate(packed):
            self._place(rank, item)
        glances = self._glances(packed)
        start = time.perf_counter()
        self._reveal()
        self.box.thaw()
        done = self._collect("done", phase, limit_s, at_last=partial(self._look_over, glances))
        parsed = [self._claim(message.get("claim")) for message in done]
        self._written = [min(claims.nbytes(claim), self.outs[0].nbytes) for claim in parsed]
        snapshots = [
            slot.snapshot(claims.nbytes(claim)) for slot, claim in zip(self.outs, parsed, strict=True)
        ]
        seconds = self._stopped() - start
        pairs = list(zip(self.ins, packed, strict=True))
        inout = [self._after(slot, item) for slot, item in pairs]
        self._freeze(phase)
        self.letting_go.begin()
        # On cards a rank's shim looks again after all streams are done; what it saw only speaks against its own job.
        looks = zip(self.outs, snapshots, done, strict=True)
        late = [not slot.same(taken) or "late" in message for slot, taken, message in looks]
        again = [self._after(slot, item) for slot, item in pairs]
        unfinished = [_first_difference(*both) for both in zip(inout, again, strict=True)]
        for rank, glance in glances.items():
            late[rank] |= glance.late(self.outs[rank].flat)
            unfinished[rank] = unfinished[rank] or glance.unfinished(self.ins[rank].flat)
        return Turn(
            seconds=seconds,
            claims=parsed,
            outputs=snapshots,
            inout=inout,
            changed=[encode.changed(item, slot.flat, self._kept) for slot, item in pairs],
            late=late,
            unfinished=unfinished,
            shared=[self._shared(message.get("shared")) for message in done],
            spans=[spans(m.get("spans")) for m in done],
            built_late=any(m.get("built") for m in done),
        )

    def _place(self, rank: int, item: encode.Packed, kind: str = "call", **more: Any) -> None:
        """Inputs into the slot, poison over the outputs, the message into the frozen rank's socket."""
        self._demand_fit(rank, item)
        self._fill(rank, item)
        self.outs[rank].poison(self._pattern_for(rank), self._poison_from(rank))
        recipe = None if self._sent_recipe[rank] == item.recipe else item.recipe
        self._sent_recipe[rank] = item.recipe
        message = {"t": kind, "seq": self._sequence, "recipe": recipe, **more}
        self._send(rank, message)

    def _demand_fit(self, rank: int, item: encode.Packed) -> None:
        if item.nbytes > self.ins[rank].nbytes:
            raise JudgeFault(f"{self.problem.slug}: inputs of {item.nbytes} bytes exceed the slot")

    def _fill(self, rank: int, item: encode.Packed) -> None:
        encode.write(item, self.ins[rank].flat)

    def _pattern_for(self, rank: int) -> torch.Tensor:
        return self._pattern

    def _poison_from(self, rank: int) -> int:
        return (self._sequence * 7919 + rank * 104729) % 65536

    def _glances(self, packed: list[encode.Packed]) -> dict[int, Glance]:
        """What is looked at before anything is copied, rank by rank in an order that no rank knows."""
        ranks = random.SystemRandom().sample(range(self.world_size), self.world_size)
        return {rank: Glance(packed[rank], self._inout, self._written[rank]) for rank in ranks}

    def _look_over(self, glances: dict[int, Glance]) -> None:
        """Before the last messages are read: that takes a while, in which the ranks are not yet stopped."""
        for rank, glance in glances.items():
            glance.take(self.outs[rank].flat, self.ins[rank].flat)

    def _reveal(self) -> None:
        """What must happen within the measured time before the ranks are let run: nothing in host memory."""

    def _stopped(self) -> float:
        """When the turn was over: the last message, since a frozen rank can write no more."""
        return self._woken

    def _claim(self, claim: Any) -> Any:
        try:
            return claims.parse(claim)
        except claims.BadClaim as error:
            raise self._failed("protocol", "call", {}, str(error)) from error

    def _shared(self, claim: Any) -> list[tuple[str, int]]:
        try:
            return claims.parse_shared(claim, len(self.problem.arguments))
        except claims.BadClaim as error:
            raise self._failed("protocol", "call", {}, str(error)) from error

    def _after(self, slot: Place, item: encode.Packed) -> dict[str, Any]:
        """The inout arguments as they are in the slot now."""
        return {
            name: encode.tree_at(item.recipe[index], slot.flat)
            for index, name in self._inout.items()
            if index < len(item.recipe)
        }

    def handshake(self, limit_s: float = 10.0) -> float:
        """Seconds of a turn in which the ranks do nothing: what the protocol itself costs."""
        self._sequence += 1
        for rank in range(self.world_size):
            self._send(rank, {"t": "nothing", "seq": self._sequence})
        start = time.perf_counter()
        self.box.thaw()
        self._collect("done", "call", limit_s)
        seconds = self._woken - start
        self._freeze("call")
        return seconds

    def look(self, packed: list[encode.Packed], limit_s: float, **wanted: Any) -> list[bytes]:
        """What each rank's profiler saw (`rank/tracer.py`), as it was sent: untrusted, at most MAX_SEEN bytes.

        Only after the last call that counts; no clock of ours runs. All parts together have PARTS_S.
        """
        self._sequence += 1
        for rank, item in enumerate(packed):
            self._place(rank, item, "look", **wanted)
        self._reveal()
        self.box.thaw()
        sizes = [_size(message, MAX_SEEN) for message in self._collect("done", "call", limit_s)]
        seen = [bytearray() for _ in sizes]
        until = time.monotonic() + PARTS_S
        while any(len(have) < size for have, size in zip(seen, sizes, strict=True)):
            self._sequence += 1
            for rank, have in enumerate(seen):
                self._send(rank, {"t": "part", "seq": self._sequence, "at": len(have)})
            parts = self._collect("done", "call", max(0.0, until - time.monotonic()))
            for slot, have, size, message in zip(self.outputs, seen, sizes, parts, strict=True):
                piece = min(slot.nbytes, size - len(have))
                if _size(message, slot.nbytes) != piece:
                    raise self._failed("protocol", "call", {}, "a rank does not deliver what it announced")
                have += bytes(slot.buffer[:piece])
        self._freeze("call")
        return [bytes(have) for have in seen]

    def peak_bytes(self) -> int | None:
        """Most memory that the job has held so far: counted by the kernel for the group, else summed over processes."""
        counted = self.box.usage().max_memory_bytes
        if counted is not None:
            return counted
        self._resident = max(self._resident, resident_peak(self.box.pids()))
        return self._resident or None

    def close(self) -> None:
        """Kill everything and keep only the log. Idempotent."""
        self.peak_bytes()
        try:
            self.template.close()  # first: a closed socket would be the last line in an author's log
        finally:
            self._hang_up()
            self.log.close()


def _size(message: dict[str, Any], limit: int) -> int:
    """How many bytes a rank says there are; 0 for what can be no size."""
    claim = message.get("nbytes")
    return claim if type(claim) is int and 0 <= claim <= limit else 0


def _first_difference(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """The first name whose tensors no longer hold the same bytes."""
    for name, tree in before.items():
        for (_, left), (_, right) in zip(tensors(tree), tensors(after[name]), strict=True):
            if not torch.equal(encode.raw_bytes(left), encode.raw_bytes(right)):
                return name
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""What runs in a rank: takes calls from the supervisor, runs `solution`, delivers bytes.

One message per call comes in ({"t": "call", "seq", "recipe" or null}); one goes out when the outputs
lie in the slot ({"t": "done", "seq", "claim"}). Errors are reported in words. Nothing here can make a
wrong answer right: the supervisor times, compares and decides.
"""

from __future__ import annotations

import errno
import faulthandler
import importlib.util
import json
import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from typing import Any

import apart
import cores
import gloo_compat
import torch
import torch.distributed as dist
from lanes import Lane, Lanes
from recipe import Decoder, reader, storage_of

ALIGN = 64
MAX_TEXT, MAX_NAME = 16000, 100
MAX_PARTS = 2000
MAX_SHARED, MAX_PATH = 100, 100
MAX_BITS = 62
MAX_VIEWS = 1000
SPIN_S = 0.02
# Looked up before the file is imported: a returned tensor may carry methods of its own under these names.
_detach, _to_dense = torch.Tensor.detach, torch.Tensor.to_dense


class _Ended(Exception):
    """The supervisor closed the socket: the job is over."""


def _plain(text: str, limit: int) -> str:
    """The text's beginning, whatever a class of the file's own makes of slices."""
    return str.__getitem__(text, slice(limit))


def _describe(error: BaseException, phase: str) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if not frame.filename.startswith(os.path.dirname(__file__))]
    text = "".join(traceback.format_exception(error))
    try:
        message = _plain(str(error), MAX_TEXT)
    except Exception as own:  # noqa: BLE001 (the file's own `__str__` may fail, too)
        message = f"its message cannot be made: __str__ raised {type(own).__name__}"
    return {
        "t": "error",
        "phase": phase,
        "type": _plain(type(error).__name__, MAX_NAME),
        "message": message,
        "traceback": text[-MAX_TEXT:],
        "outside": not inside,
        "line": next((f.lineno for f in reversed(frames) if f.filename.endswith("solution.py")), None),
    }


class Rank:
    """One rank's side of the protocol."""

    def __init__(
        self,
        rank: int,
        order: dict[str, Any],
        control: socket.socket,
        inputs_fd: int,
        outputs_fd: int,
        *cards: int,
    ) -> None:
        self.rank, self.order, self.control = rank, order, control
        self.pid = os.getpid()
        self.inputs = apart.map_slot(inputs_fd, order["inputs_bytes"])
        self.outputs = apart.map_slot(outputs_fd, order["outputs_bytes"])
        self.flat = torch.frombuffer(self.outputs, dtype=torch.uint8)
        self.views: dict[Any, torch.Tensor] = {}
        self.card_fds = cards
        self.lanes: Lanes | None = None
        self.recipe: list[dict[str, Any]] = []
        self.solution: Any = None
        self.decoder = Decoder(reader(self.inputs), {})
        self.device = torch.device("cpu")
        self.late_builds: list[str] = []
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.seen = b""
        self.woken = 0

    def send(self, message: dict[str, Any]) -> None:
        if os.getpid() != self.pid:
            os._exit(70)  # a child that the file forked and let run on: it is not the rank
        self.control.send(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"))

    def start(self) -> None:
        """Join the process group, make the problem's groups, import the solution."""
        torch.set_num_threads(self.order["threads"])
        if self.order["backend"] == "gloo":
            gloo_compat.install()
        if self.order["device"] is None:
            apart.enter_own_domain()
        else:
            self.device = torch.device("cuda", self.order["device"][self.rank])
            torch.cuda.set_device(self.device)
            if self.card_fds:
                self.lanes = Lanes(self.card_fds, self.device, self.order["lanes"])
        cores.hold(self.order["cores"][self.rank])
        self._join()
        groups: dict[Any, Any] = {None: dist.group.WORLD}
        for ranks in self.order["groups"]:
            groups[tuple(ranks)] = dist.new_group(ranks)
        folder = self.order["job_folder"]
        factories = _load(f"{folder}/factories.py", "factories") if self.order["factories"] else None
        if self.lanes is not None:
            self.decoder = Decoder(self.lanes.lane(0).at, groups, factories)
        else:
            place = self._to_card if self.device.type == "cuda" else None
            self.decoder = Decoder(reader(self.inputs), groups, factories, place)
        self.send({"t": "joined"})
        if self.order["held"] and not self.control.recv(1 << 10):
            raise _Ended
        import extensions

        extensions.use_ready(folder)
        self.late_builds = extensions.LATE
        module = _load(f"{folder}/solution.py", "solution")
        self.solution = getattr(module, "solution", None)
        if not callable(self.solution):
            raise AttributeError("the file defines no callable named `solution`")

    def _join(self) -> None:
        """The default group. A NCCL rank must name its card."""
        if self.device.type == "cuda":
            dist.init_process_group(self.order["backend"], device_id=self.device)
        else:
            dist.init_process_group(self.order["backend"])

    def _to_card(self, host: torch.Tensor) -> torch.Tensor:
        """A card's copy of a slot tensor; what the call does to it is copied back before done."""
        card = host.to(self.device)
        self.copies.append((host, card))
        return card

    def call(self, message: dict[str, Any]) -> None:
        """One call: rebuild the arguments, run, copy the result into the slot, say so."""
        self._take(message)
        self.copies.clear()
        args = self.decoder.arguments(self.recipe)
        began = time.monotonic_ns()
        result = self.solution(*args)
        middle = time.monotonic_ns()
        writer = Writer(self.flat, self.decoder.origins, self.views)
        claim = writer.node(result)
        if self.device.type == "cuda":
            # Whatever still runs on other streams ends here; what it then changed was not in the answer.
            torch.cuda.synchronize()
        late = writer.changed()
        for host, card in self.copies:
            host.copy_(card.detach())
        self._hand_back(self.recipe, args)
        if self.lanes is not None:
            torch.cuda.synchronize()
        ended = time.monotonic_ns()
        spans = [self.woken, began, middle, ended]
        done = {"t": "done", "seq": message["seq"], "claim": claim, "spans": spans}
        if late:
            done["late"] = True
        if writer.shared:
            done["shared"] = writer.shared[:MAX_SHARED]
        if self.late_builds:
            done["built"] = self.late_builds
        try:
            self.send(done)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            self.send({**done, "claim": {"x": "tree that takes too many words"}})

    def _take(self, message: dict[str, Any]) -> None:
        """The recipe of a call and, on cards that rank times, its lane."""
        if message["recipe"] is not None:
            self.recipe = message["recipe"]
        if self.lanes is not None:
            lane = self.lanes.lane(message["lane"])
            self.decoder.at, self.flat, self.views = lane.at, lane.outputs, lane.views

    def _hand_back(self, recipe: list[dict[str, Any]], args: list[Any]) -> None:
        """Entries that the call replaced in lists of inout arguments go to where the old ones lie in the slot."""
        replaced: list[tuple[torch.Tensor, torch.Tensor]] = []
        for index in self.order["inout"]:
            if index < len(args):
                self.decoder.replaced(recipe[index], args[index], replaced)
        for place, value in replaced:
            place.copy_(value)

    def batch(self, message: dict[str, Any]) -> None:
        """Calls back to back on cards, one per lane, with one synchronisation at the end.

        With `gate` each waits on the card itself until the supervisor has put its inputs in place, and tells it there
        when its outputs lie in the lane. `warm` calls go before the clock: a host that was frozen launches slowly at
        first. `empty`: everything but the solution, to learn what the turns cost; without a gate that is the word
        alone.
        """
        lanes = self.lanes
        if lanes is None:
            raise RuntimeError("batches are for cards")
        work, gate, warm = self._prepared(lanes, message), message["gate"], message["warm"]
        tick = lanes.tick if message["empty"] else None
        written = [] if tick else [self._one(lane, recipe) for lane, recipe in work[:warm]]
        torch.cuda.synchronize()
        self.send({"t": "armed"})
        self._await_word()
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        began = time.monotonic_ns()
        for index, (lane, recipe) in enumerate(work[warm:]):
            if gate is not None:
                lanes.await_go(gate + index)
            if index == 0:
                marks[0].record()
            if not tick:
                written.append(self._one(lane, recipe))
            elif gate is not None:
                tick()
            if gate is not None:
                lanes.tell_done(gate + index)
        marks[1].record()
        middle = time.monotonic_ns()
        if gate is not None:
            self.send({"t": "queued"})
        torch.cuda.synchronize()
        spans = [self.woken, began, middle, time.monotonic_ns()]
        if gate is None:
            self.send({"t": "ended"})
            self._await_word()
        done = {"t": "done", "seq": message["seq"], "spans": spans, "built": self.late_builds}
        claims = [w.claim for w in written]
        # Most calls of a batch return the same shapes, and a message has its limit: null stands for the one before.
        short = [None if n and claim == claims[n - 1] else claim for n, claim in enumerate(claims)]
        told = {"claims": short, "shared": [w.shared[:MAX_SHARED] for w in written]}
        self.send({**done, **told, "device_ms": marks[0].elapsed_time(marks[1])})

    def _await_word(self) -> None:
        """Look without pause at first: a rank that sleeps is woken later than a short batch takes."""
        until = time.monotonic() + SPIN_S
        while time.monotonic() < until:
            with suppress(BlockingIOError):
                word = self.control.recv(16, socket.MSG_DONTWAIT)
                break
        else:
            word = self.control.recv(16)
        if not word:
            raise _Ended

    def _prepared(self, lanes: Lanes, message: dict[str, Any]) -> list[tuple[Lane, list[dict[str, Any]]]]:
        """Per call its lane and recipe, the tensors made ahead."""
        work = []
        for index, recipe in enumerate(message["recipes"]):
            self.recipe = self.recipe if recipe is None else recipe
            lane = lanes.lane(index)
            if not message["empty"]:
                lane.prepare(self.recipe)
            work.append((lane, self.recipe))
        return work

    def _one(self, lane: Lane, recipe: list[dict[str, Any]]) -> Writer:
        """One call of a batch, enqueued: its arguments from the lane, its outputs into it."""
        self.decoder.at = lane.at
        args = self.decoder.arguments(recipe)
        writer = Writer(lane.outputs, self.decoder.origins, lane.views)
        writer.claim = writer.node(self.solution(*args))
        writer.written.clear()  # what the file returned is free again, as it would be for any caller
        if self.order["inout"]:
            self._hand_back(recipe, args)
        return writer

    def look(self, message: dict[str, Any]) -> None:
        """Calls that count for nothing, under a profiler; what was seen is then fetched in parts."""
        import tracer

        self._take(message)

        def call() -> Any:
            self.copies.clear()
            return self.solution(*[self.decoder.decode(node) for node in self.recipe])

        wanted = {key: message[key] for key in ("warm", "calls", "detail")}
        self.seen = tracer.look(call, **wanted)
        self.send({"t": "done", "seq": message["seq"], "nbytes": len(self.seen)})

    def part(self, message: dict[str, Any]) -> None:
        """The next bytes of what was seen, into the output slot."""
        piece = self.seen[message["at"] : message["at"] + len(self.outputs)]
        self.outputs[: len(piece)] = piece
        self.send({"t": "done", "seq": message["seq"], "nbytes": len(piece)})

    def record(self) -> int:
        """Import the file where builds are only noted down, and tell which there were."""
        torch.set_num_threads(1)
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        import extensions

        units: list[dict[str, Any]] = []
        extensions.record(units, self.order["job_folder"])
        note = ""
        try:
            _load(self.order["job_folder"] + "/solution.py", "solution")
        except BaseException as error:  # noqa: BLE001 (whatever the file does, it is only noted)
            note = f"{type(error).__name__}: {error}"[:500]
        data = json.dumps(units).encode()
        if len(data) <= len(self.outputs):
            self.outputs[: len(data)] = data
        self.send({"t": "ready", "note": note, "nbytes": len(data)})
        # The supervisor ends the job once it has read that: who ends before is taken for one that crashed.
        self.control.recv(1)
        return 0

    def serve(self) -> int:
        """Take messages until the supervisor is done. Errors of the solution are reported."""
        phase = "import"
        try:
            self.start()
            self.send({"t": "ready"})
            phase = "call"
            while True:
                data = self.control.recv(1 << 20)
                self.woken = time.monotonic_ns()
                if not data:
                    raise _Ended
                message = json.loads(data)
                if message["t"] in ("call", "look", "part", "batch"):
                    getattr(self, message["t"])(message)
                else:
                    self.send({"t": "done", "seq": message["seq"], "claim": None, "spans": []})
        except _Ended:
            return 0
        except BaseException as error:  # noqa: BLE001 (whatever the file raises is reported)
            self.send(_describe(error, phase))
            traceback.print_exc()
            # The supervisor ends the job; until then peers may still be asked where they wait.
            self.control.recv(1)
            return 1


class Writer:
    """Copies a returned tree into the output slot and states what it was."""

    def __init__(self, flat: torch.Tensor, origins: dict[int, int], views: dict[Any, torch.Tensor]) -> None:
        """`views` keeps the places in `flat` as tensors, by where and what they are, from call to call."""
        self.flat, self.origins, self.views = flat, origins, views
        self.shared: list[tuple[str, int]] = []
        self.claim: dict[str, Any] = {}
        self.used = 0
        self.parts = 0
        self.written: list[tuple[torch.Tensor, torch.Tensor]] = []

    def changed(self) -> bool:
        """Whether a tensor on a card no longer holds the bytes that were copied out."""
        return any(not torch.equal(place, _bytes(card).to(place.device)) for place, card in self.written)

    def tensor(self, tensor: torch.Tensor, path: str) -> dict[str, Any]:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return {"x": type(tensor).__name__}
        with torch.no_grad():
            plain = _detach(tensor)
            if plain.layout != torch.strided:
                plain = _to_dense(plain)
            elif plain.numel() and plain.device.type != "meta" and storage_of(plain) in self.origins:
                self.shared.append((path[:MAX_PATH], self.origins[storage_of(plain)]))
            if plain.is_conj() or plain.is_neg():
                plain = plain.resolve_conj().resolve_neg()
            size = plain.numel() * plain.element_size()
            start = self.used
            self.used = (start + size + ALIGN - 1) // ALIGN * ALIGN
            claim = {"t": [str(plain.dtype).removeprefix("torch."), list(plain.shape)]}
            if start + size > self.flat.numel():
                return claim
            if size:
                self._view(start, size, plain).copy_(plain)
                if plain.is_cuda:
                    self.written.append((self.flat[start : start + size], plain))
            return claim

    def _view(self, start: int, size: int, like: torch.Tensor) -> torch.Tensor:
        key = (start, like.dtype, like.shape)
        if key not in self.views:
            if len(self.views) >= MAX_VIEWS:
                self.views.clear()
            self.views[key] = self.flat[start : start + size].view(like.dtype).view(like.shape)
        return self.views[key]

    def node(self, leaf: Any, path: str = "") -> dict[str, Any]:
        self.parts += 1
        if self.parts > MAX_PARTS:
            return {"x": f"tree of more than {MAX_PARTS} parts"}
        if isinstance(leaf, torch.Tensor):
            return self.tensor(leaf, path)
        if isinstance(leaf, torch.Size):
            return {"v": list(leaf)}
        if isinstance(leaf, str) and len(leaf) > MAX_TEXT:
            return {"x": f"string of {len(leaf)} characters"}
        if isinstance(leaf, int) and leaf.bit_length() > MAX_BITS:
            return {"x": f"number of more than {MAX_BITS} bits"}
        if leaf is None or isinstance(leaf, (bool, int, float, str)):
            return {"v": leaf}
        if isinstance(leaf, (list, tuple, dict)) and len(leaf) > MAX_PARTS:
            return {"x": f"{type(leaf).__name__} of more than {MAX_PARTS} parts"}
        if isinstance(leaf, (list, tuple)):
            return {"l": [self.node(item, _below(path, index)) for index, item in enumerate(leaf)]}
        if isinstance(leaf, dict):
            return {"d": {str(key): self.node(leaf[key], _below(path, key)) for key in sorted(leaf, key=str)}}
        return {"x": type(leaf).__name__}


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements in order, as flat bytes."""
    flat = tensor.contiguous().reshape(-1)
    return (
        torch.view_as_real(flat).reshape(-1).view(torch.uint8)
        if flat.is_complex()
        else flat.view(torch.uint8)
    )


def _load(path: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run(
    rank: int,
    order: dict[str, Any],
    control_fd: int,
    inputs_fd: int,
    outputs_fd: int,
    stdout_fd: int,
    stderr_fd: int,
    stack_fd: int,
    *card_fds: int,
) -> None:
    """Become rank `rank`; never returns."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(order["env"])
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", ROLE_RANK=str(rank))
        os.dup2(stdout_fd, 1)
        os.dup2(stderr_fd, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        os.close(stdout_fd)
        os.close(stderr_fd)
        faulthandler.register(signal.SIGUSR2, file=stack_fd, all_threads=True)
        faulthandler.enable(file=2)
        os.chdir(order["cwd"])
        if order["address_space"] is not None:
            apart.limit_address_space(order["address_space"])
        sys.argv = ["solution.py"]
        sys.path.append(order["job_folder"])  # where a process that the file spawns finds the file
        control = socket.socket(fileno=control_fd)
        me = Rank(rank, order, control, inputs_fd, outputs_fd, *card_fds)
        code = me.record() if order.get("record") else me.serve()
    except BaseException:  # noqa: BLE001 (the last frame of a rank)
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

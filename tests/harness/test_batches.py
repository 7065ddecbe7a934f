"""A rank's side of a batch on cards, the card played by host memory: calls, words and their order."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
import torch

from evaluator.harness import encode
from evaluator.harness.cardjob import _filled

LANE = 4096


class Memory:
    """A region of a card's memory."""

    def __init__(self, nbytes: int) -> None:
        self.flat = torch.zeros(nbytes, dtype=torch.uint8)

    def bytes(self, offset: int, nbytes: int) -> torch.Tensor:
        return self.flat[offset : offset + nbytes]


class Channel:
    """The rank's socket: the word comes whenever it is waited for."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log
        self.sent: list[dict[str, Any]] = []
        self.not_yet, self.word = 0, b"go"

    def send(self, data: bytes) -> None:
        self.sent.append(json.loads(data))
        self.log.append(self.sent[-1]["t"])

    def recv(self, size: int, flags: int = 0) -> bytes:
        if flags and self.not_yet:
            self.not_yet -= 1
            raise BlockingIOError
        self.log.append("word")
        return self.word


class Event:
    """In the place of a CUDA event."""

    def __init__(self, enable_timing: bool) -> None:
        self.timed = enable_timing

    def record(self) -> None:
        pass

    def elapsed_time(self, other: Event) -> float:
        return 1.5


class Card:
    """A rank with lanes in host memory, and a log of what happened in order."""

    def __init__(
        self, shim: ModuleType, monkeypatch: pytest.MonkeyPatch, lanes: int, inout: list[int]
    ) -> None:
        from lanes import Lane  # type: ignore[import-not-found]

        self.log: list[Any] = []
        self.inputs, outputs = Memory(lanes * LANE), Memory(lanes * LANE)
        self.rank = shim.Rank.__new__(shim.Rank)
        self.rank.pid, self.rank.recipe, self.rank.late_builds = shim.os.getpid(), [], []
        self.rank.order, self.rank.woken = {"inout": inout}, 7
        self.rank.control = Channel(self.log)
        self.rank.decoder = shim.Decoder(None, {})
        self.lanes = [Lane(self.inputs, n * LANE, outputs.bytes(n * LANE, LANE)) for n in range(lanes)]
        self.rank.lanes = self
        monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: self.log.append("sync"))
        monkeypatch.setattr(torch.cuda, "Event", Event)

    def lane(self, number: int) -> Any:
        return self.lanes[number]

    def await_go(self, call: int) -> None:
        self.log.append(("await", call))

    def tell_done(self, call: int) -> None:
        self.log.append(("done", call))

    def tick(self) -> None:
        self.log.append("tick")

    def place(self, calls: list[list[torch.Tensor]]) -> list[Any]:
        """Inputs in place; the recipes."""
        recipes = []
        for number, args in enumerate(calls):
            packed = encode.pack(args)
            encode.write(packed, self.inputs.bytes(number * LANE, LANE))
            recipes.append(packed.recipe)
        return recipes

    def run(self, recipes: list[Any], **how: Any) -> dict[str, Any]:
        self.rank.batch(
            {"t": "batch", "seq": 5, "recipes": recipes, "gate": None, "warm": 0, "empty": False} | how
        )
        return self.rank.control.sent[-1]


def doubled(card: Card) -> Any:
    def solution(tensor: torch.Tensor) -> torch.Tensor:
        card.log.append("call")
        return tensor * 2

    return solution


def calls(count: int) -> list[list[torch.Tensor]]:
    return [[torch.full((3,), float(n + 1))] for n in range(count)]


def test_a_stream_batch_calls_back_to_back_and_tells_only_after_the_clock(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 3, [])
    card.rank.solution = doubled(card)
    done = card.run(card.place(calls(3)), warm=1)
    assert card.log == [
        "call", "sync", "armed", "word", "call", "call", "sync", "ended", "word", "done",
    ]  # fmt: skip
    assert done["seq"] == 5
    assert done["device_ms"] == 1.5
    assert done["spans"][0] == 7
    assert done["spans"] == sorted(done["spans"])
    assert done["claims"] == [{"t": ["float32", [3]]}, None, None]
    assert _filled(done["claims"]) == [{"t": ["float32", [3]]}] * 3
    for number, lane in enumerate(card.lanes):
        assert lane.outputs[:12].view(torch.float32).tolist() == [2.0 * (number + 1)] * 3


def test_each_gated_call_waits_for_its_own_number_and_tells_it_after_its_outputs(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 2, [])
    card.rank.solution = doubled(card)
    card.run(card.place(calls(2)), gate=40)
    assert card.log == [
        "sync", "armed", "word",
        ("await", 40), "call", ("done", 40), ("await", 41), "call", ("done", 41),
        "queued", "sync", "done",
    ]  # fmt: skip


def test_an_empty_batch_takes_the_same_turns_without_the_solution(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 2, [])
    card.rank.solution = doubled(card)
    done = card.run(card.place(calls(2)), gate=7, empty=True)
    assert card.log[3:-3] == [("await", 7), "tick", ("done", 7), ("await", 8), "tick", ("done", 8)]
    assert done["claims"] == []
    assert done["shared"] == []


def test_an_empty_stream_batch_is_the_word_alone(shim: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(shim, monkeypatch, 2, [])
    card.run(card.place(calls(2)), empty=True)
    assert card.log == ["sync", "armed", "word", "sync", "ended", "word", "done"]


@pytest.mark.parametrize(("spin_s", "looks"), [(60.0, 3), (0.0, 0)])
def test_a_rank_looks_for_the_word_before_it_sleeps(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch, spin_s: float, looks: int
) -> None:
    monkeypatch.setattr(shim, "SPIN_S", spin_s)
    card = Card(shim, monkeypatch, 1, [])
    card.rank.control.not_yet = 3
    card.rank._await_word()
    assert card.log == ["word"]
    assert card.rank.control.not_yet == 3 - looks


def test_a_batch_whose_word_never_comes_is_the_end_of_the_job(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 1, [])
    card.rank.control.word = b""
    with pytest.raises(shim._Ended):
        card.rank._await_word()


def test_a_recipe_that_is_not_repeated_is_the_one_before(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 2, [])
    card.rank.solution = doubled(card)
    first, _ = card.place(calls(2))
    card.run([first, None])
    assert card.lanes[1].outputs[:12].view(torch.float32).tolist() == [4.0] * 3


def test_what_is_replaced_in_an_inout_list_goes_back_into_its_own_lane(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 2, [0])

    def solution(state: list[torch.Tensor]) -> None:
        state[0] = state[0] + 10

    card.rank.solution = solution
    card.run(card.place([[[torch.ones(2)]], [[torch.full((2,), 5.0)]]]))  # type: ignore[list-item]
    assert card.inputs.bytes(0, 8).view(torch.float32).tolist() == [11.0, 11.0]
    assert card.inputs.bytes(LANE, 8).view(torch.float32).tolist() == [15.0, 15.0]


def test_an_output_in_the_memory_of_an_argument_is_told_per_call(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 2, [])
    card.rank.solution = lambda tensor: tensor
    done = card.run(card.place(calls(2)))
    assert done["shared"] == [[["", 0]], [["", 0]]]


def test_the_returned_tensors_are_not_kept_by_the_batch(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import weakref

    card = Card(shim, monkeypatch, 2, [])
    alive: list[Any] = []

    def solution(tensor: torch.Tensor) -> torch.Tensor:
        card.log.append(sum(ref() is not None for ref in alive))
        made = tensor + 1
        alive.append(weakref.ref(made))
        return made

    card.rank.solution = solution
    card.run(card.place(calls(2)))
    assert [entry for entry in card.log if type(entry) is int] == [0, 0]


def test_an_empty_tensor_does_not_take_the_place_of_the_one_that_begins_there(
    shim: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(shim, monkeypatch, 1, [])
    card.rank.solution = lambda none, tensor: (none.float() * 2, tensor * 2)
    empty = torch.zeros(0, 3, dtype=torch.int64)
    card.run(card.place([[empty, torch.ones(2)]]))
    assert card.rank.control.sent[-1]["claims"] == [
        {"l": [{"t": ["float32", [0, 3]]}, {"t": ["float32", [2]]}]}
    ]
    assert card.lanes[0].outputs[:8].view(torch.float32).tolist() == [2.0, 2.0]

"""What a rank says of odd errors and odd results: the author is told what is wrong, not that a rank went away."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.harness import claims
from evaluator.harness.channel import channel


class Mute(Exception):
    """An error whose text cannot be had, since it was made without what its text speaks of."""

    def __str__(self) -> str:
        return str(self.args[0]["reason"])


def test_an_error_without_a_text_is_told_all_the_same(shim: ModuleType) -> None:
    told = shim._describe(Mute({}), "call")

    assert told["type"] == "Mute"
    assert "__str__ raised KeyError" in told["message"]


def test_a_long_name_of_an_error_leaves_the_message_short(shim: ModuleType) -> None:
    told = shim._describe(type("E" * 300_000, (Exception,), {})("x"), "call")

    assert len(told["type"]) == shim.MAX_NAME


@pytest.mark.parametrize(
    "result",
    [[torch.zeros([1] * 60)] * 1900, {f"{n}" * 4000: 1 for n in range(100)}, ["x" * 15_000] * 30],
    ids=["shapes", "keys", "texts"],
)
def test_a_result_that_takes_too_many_words_is_no_crash(shim: ModuleType, result: Any) -> None:
    ours, theirs = channel()
    with ours, theirs:
        rank = shim.Rank.__new__(shim.Rank)
        rank.pid, rank.control, rank.solution = os.getpid(), theirs, lambda: result
        rank.device, rank.lanes, rank.copies, rank.late_builds = torch.device("cpu"), None, [], []
        rank.flat, rank.views, rank.woken = torch.zeros(1 << 20, dtype=torch.uint8), {}, 0
        rank.order = {"inout": []}
        rank.decoder = SimpleNamespace(arguments=lambda recipe: [], origins={})
        rank.call({"t": "call", "seq": 7, "recipe": []})
        done = json.loads(ours.recv(1 << 20))

    assert done["seq"] == 7
    kind, sentence = claims.difference(claims.parse(done["claim"]), {"t": ["float32", [4]]}) or ("", "")
    assert kind == "type"
    assert "too many words" in sentence


def test_a_message_whose_slices_are_its_own_is_text_all_the_same(shim: ModuleType) -> None:
    class Sly(str):
        def __getitem__(self, key: Any) -> Any:
            return {"t": "done"}

    class Said(Exception):
        def __str__(self) -> str:
            return Sly("what happened")

    told = shim._describe(Said(), "call")

    assert type(told["message"]) is str
    assert told["message"] == "what happened"


def test_nobody_counts_cards_before_ranks_are_forked(
    shim: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has asked for cards may not use them after a fork: without any, ranks would be told of forks."""
    template = importlib.import_module("template")
    cuda = SimpleNamespace(is_available=lambda: pytest.fail("cards were counted"))
    asked = cuda.is_available
    monkeypatch.setitem(sys.modules, "holder", SimpleNamespace(cuda=cuda, told=[]))
    monkeypatch.delitem(sys.modules, "extensions", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "extensions.py").write_text("import holder\nholder.told.append(holder.cuda.is_available())\n")

    template._import_extensions(cuda)

    assert sys.modules["holder"].told == [False]
    assert cuda.is_available is asked
    del sys.modules["extensions"]

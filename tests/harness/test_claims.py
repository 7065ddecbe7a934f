"""What ranks state about outputs: read with suspicion, compared, never trusted for size or words."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from evaluator.harness import claims

MATRIX = {"t": ["bfloat16", [2, 3]]}


@pytest.mark.parametrize(
    "claim",
    [
        None, [], {}, 3, {"t": [], "v": 1}, {"t": ["float32"]}, {"t": ["float32", "x"]}, {"t": ["float32", [1.0]]},
        {"t": ["float32", [-1]]}, {"t": ["float32", [True]]}, {"t": [7, [1]]}, {"l": {}}, {"d": []}, {"x": 1},
        {"v": {}}, {"v": [1, "a"]}, {"v": [math.nan]}, {"t": ["float32", [math.nan]]}, {"q": 1},
    ],
)  # fmt: skip
def test_what_the_shim_never_writes_is_refused(claim: Any) -> None:
    with pytest.raises(claims.BadClaim):
        claims.parse(claim)


def test_which_outputs_lie_in_which_argument() -> None:
    assert claims.parse_shared(None, 2) == []
    assert claims.parse_shared([["0.a", 1], ["", 0]], 2) == [("0.a", 1), ("", 0)]


@pytest.mark.parametrize(
    "claim", [{}, "x", [1], [["a"]], [["a", 2]], [["a", -1]], [["a", True]], [[1, 1]], [["a", 0]] * 101]
)
def test_a_claim_about_shared_memory_is_refused_when_it_is_none(claim: Any) -> None:
    with pytest.raises(claims.BadClaim):
        claims.parse_shared(claim, 2)


@pytest.mark.parametrize(
    "claim",
    [
        {"t": ["float32", [1] * 65]},
        {"t": ["float32", [1 << 70]]},
        {"v": 10**300},
        {"l": [{"v": 1}] * 30000},
    ],
)
def test_what_is_only_odd_becomes_a_contract_error(claim: Any) -> None:
    found = claims.difference(claims.parse(claim), MATRIX)

    assert found is not None
    assert found[0] in ("type", "structure")


def test_deep_trees_end() -> None:
    deep: Any = {"v": 1}
    for _ in range(200):
        deep = {"l": [deep]}

    assert claims.difference(claims.parse(deep), MATRIX) is not None


def test_words_of_ranks_can_be_stored_and_shown() -> None:
    nasty = "\ud800 \x1b[31mred\x00 \u202e" + "x" * 5000
    parsed = claims.parse({"d": {nasty: {"x": nasty}}})
    kind, sentence = claims.difference(parsed, MATRIX) or ("", "")

    assert kind == "structure"
    assert len(sentence) <= claims.MAX_WORDS
    sentence.encode()
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in sentence)


@pytest.mark.parametrize(
    ("got", "kind"),
    [
        (MATRIX, None),
        ({"t": ["bfloat16", [3, 2]]}, "shape"),
        ({"t": ["bfloat16", [2, 3, 1]]}, "shape"),
        ({"t": ["bfloat16", []]}, "shape"),
        ({"t": ["bfloat16", [0, 3]]}, "shape"),
        ({"t": ["float32", [2, 3]]}, "dtype"),
        ({"l": [MATRIX]}, "structure"),
        ({"v": None}, "structure"),
        ({"x": "ndarray"}, "type"),
        ({"x": "AsyncCollectiveTensor"}, "type"),
    ],
)
def test_differences(got: Any, kind: str | None) -> None:
    found = claims.difference(claims.parse(got), MATRIX)

    assert (found[0] if found else None) == kind


def test_list_and_tuple_are_the_same_but_parts_must_agree() -> None:
    two = {"l": [MATRIX, {"v": 1}]}

    assert claims.difference({"l": [MATRIX, {"v": 2}]}, two) is None
    assert claims.difference({"l": [MATRIX]}, two) is not None
    assert claims.difference({"d": {"a": MATRIX}}, {"d": {"b": MATRIX}}) is not None


def test_sizes_are_counted_never_allocated() -> None:
    assert claims.nbytes({"t": ["float32", [1 << 40, 1 << 20]]}) == 4 << 60
    assert claims.nbytes({"l": [{"t": ["uint8", [1]]}, {"t": ["nonsense", [1]]}, {"v": 3}]}) == 128


def test_tree_lies_where_the_shim_packs() -> None:
    data = torch.zeros(256, dtype=torch.uint8)
    data[:6] = torch.tensor([1, 2, 3, 4, 5, 6])
    data[64:68] = torch.tensor([0, 0, 128, 63])
    claim = {"d": {"a": {"t": ["uint8", [2, 3]]}, "b": {"t": ["float32", []]}, "c": {"v": [2, 3]}}}

    tree = claims.tree(json.loads(json.dumps(claim)), data)

    assert tree["a"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert float(tree["b"]) == 1.0
    assert tree["c"] == torch.Size([2, 3])

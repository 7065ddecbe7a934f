"""The roofline: the paper's check value, collectives, phases, and expressions that are refused."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.harness import result
from problems.registry import load_problem, load_target
from problems.roofline import (
    Hardware,
    Phase,
    PhaseTime,
    bound_of,
    evaluate,
    link_bytes,
    phase_times,
    roof_seconds,
)

PLAIN = Hardware({"fp32": 1.0}, memory_gbs=1.0, link_gbs=1.0, in_network_reduction=False)


def test_the_papers_check_value() -> None:
    """Hyena Conv1D boundary exchange, B=1, H=1024, K=7, W=4, 2 bytes, local length 2048."""
    problem = load_problem("hyena_conv1d_boundary_exchange")

    (time,) = problem.times("default", load_target("h100x4"))

    assert time.compute == pytest.approx(438e-9, abs=0.5e-9)
    assert time.memory == pytest.approx(2508e-9, abs=0.5e-9)
    assert time.link == pytest.approx(55e-9, abs=0.5e-9)
    assert roof_seconds([time]) == pytest.approx(2.51e-6, rel=2e-3)
    assert bound_of([time]) == "memory"


@pytest.mark.parametrize(
    ("op", "payload", "group", "reduction", "expected"),
    [
        ("all_reduce", 100, 4, False, 150),
        ("all_reduce", 100, 4, True, 100),
        ("all_gather", 100, 4, True, 300),
        ("reduce_scatter", 100, 4, True, 75),
        ("all_to_all", 100, 4, False, 75),
        ("broadcast", 100, 4, False, 100),
        ("p2p", 100, 4, False, 100),
        ("all_reduce", 100, 1, False, 0),
    ],
)
def test_least_bytes_over_a_link(op: str, payload: int, group: int, reduction: bool, expected: int) -> None:
    assert link_bytes(op, payload, group, reduction) == pytest.approx(expected)


def test_an_unknown_collective_is_refused() -> None:
    with pytest.raises(ValueError, match="telepathy"):
        link_bytes("telepathy", 1, 4, False)


def test_inside_a_phase_work_overlaps_and_between_phases_it_adds_up() -> None:
    phases = [
        Phase("a", "1e12", "fp32", "2e9", ({"op": "p2p", "bytes": "3e9"},)),
        Phase("b", "5e12", "fp32", "2e9", ()),
    ]

    times = phase_times(phases, {"W": 4}, PLAIN)

    assert [time.seconds for time in times] == pytest.approx([3.0, 5.0])
    assert roof_seconds(times) == pytest.approx(8.0)
    assert [time.bound for time in times] == ["nvlink", "compute"]


def test_axes_of_one_phase_share_the_link() -> None:
    both = ({"op": "p2p", "bytes": "1e9"}, {"op": "all_gather", "bytes": "1e9", "group": "2"})

    (time,) = phase_times([Phase("x", "0", "fp32", "0", both)], {"W": 4}, PLAIN)

    assert time.link == pytest.approx(2.0)


def test_a_phase_without_a_peak_for_its_path_is_an_error() -> None:
    with pytest.raises(ValueError, match="fp8"):
        phase_times([Phase("x", "1", "fp8", "0", ())], {"W": 4}, PLAIN)


def test_bound_is_the_resource_of_most_time() -> None:
    assert bound_of([PhaseTime("a", 1, 2, 3), PhaseTime("b", 9, 0, 0)]) == "compute"
    assert bound_of([]) == "memory"


@pytest.mark.parametrize(
    "text", ["__import__('os')", "a.b", "[1]", "lambda: 1", "M +", "unknown", "1/0", "f(M)"]
)
def test_expressions_hold_arithmetic_only(text: str) -> None:
    with pytest.raises(ValueError, match="cannot evaluate"):
        evaluate(text, {"M": 2})


def test_expressions() -> None:
    assert evaluate("2*M**2 if M > 1 else 0", {"M": 3}) == 18
    assert evaluate("max(ceil(M/2), 1) - -1", {"M": 3}) == 3
    assert math.isclose(evaluate("log2(M)", {"M": 8}), 3)


def test_a_result_has_a_roofline_where_times_are_measured() -> None:
    problem = load_problem("allreduce")
    for slug, timed in (("h200x1", False), ("h200x2", True)):
        facts: Any = SimpleNamespace(problem=problem, target=load_target(slug), size="default")
        assert (result._roofline(facts, None) is not None) is timed

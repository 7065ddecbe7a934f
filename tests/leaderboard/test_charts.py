"""Chart data that boards of problems draw."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard import charts, model_rows
from leaderboard.axes import CHARACTER_PX, NARROWEST_PX, log_ticks, time_range
from leaderboard.marks import WIDTH, interval_marks, sparkline


@dataclass
class Row:
    speedup: float
    speedup_low: float
    speedup_high: float


@dataclass
class Record:
    at: datetime
    speedup: float
    entrant: str


def test_a_record_is_a_staircase_with_literal_names() -> None:
    figure = charts.record_history([Record(datetime(2026, 1, 2, tzinfo=UTC), 1.5, "<i>x</i>")])
    (trace,) = figure["data"]
    assert (trace["x"], trace["y"]) == (["2026-01-02T00:00:00+00:00"], [1.5])
    assert trace["text"] == ["&lt;i&gt;x&lt;/i&gt;"]
    assert figure["layout"]["xaxis"]["range"] == ["2026-01-01T12:00:00+00:00", "2026-01-02T12:00:00+00:00"]


def test_records_close_together_are_not_spread_over_milliseconds() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    for seconds, before in ((20, 29 * 60 + 50), (36_000, 1_800)):
        first, last = (
            datetime.fromisoformat(end) for end in time_range([noon, noon + timedelta(seconds=seconds)])
        )
        assert noon - first == timedelta(seconds=before)
        assert last - noon == timedelta(seconds=seconds + before)


@given(st.lists(st.floats(0.01, 200), min_size=1, max_size=40))
def test_the_spread_counts_every_entrant_once(speedups: list[float]) -> None:
    (trace,) = charts.spread(speedups)["data"]
    assert sum(trace["y"]) == len(speedups)
    for (low, high), count in zip(trace["customdata"], trace["y"], strict=True):
        inside = sum(low * (1 - 1e-12) <= s < high * (1 + 1e-12) for s in speedups)
        assert inside >= count


positive = st.floats(0.05, 50)


@given(st.lists(st.tuples(positive, st.floats(1.0, 1.5), st.floats(1.0, 1.5)), min_size=1, max_size=20))
def test_marks_stay_inside_and_in_order(raw: list[tuple[float, float, float]]) -> None:
    rows = [Row(speedup, speedup / down, speedup * up) for speedup, down, up in raw]
    for mark, row in zip(interval_marks(rows), rows, strict=True):
        assert 0 <= mark.low <= mark.x <= mark.high <= WIDTH
        assert (mark.x > mark.one) == (row.speedup > 1) or math.isclose(mark.x, mark.one, abs_tol=0.02)


def test_no_rows_no_marks() -> None:
    assert interval_marks([]) == []
    assert sparkline([0.5]) == ""


def test_a_sparkline_runs_from_edge_to_edge() -> None:
    points = [tuple(map(float, point.split(","))) for point in sparkline([1.0, 0.5, 0.0, 7.0]).split()]
    assert points[0] == (1.0, 1.0)
    assert points[-1] == (119.0, 1.0)
    assert points[2][1] == pytest.approx(27.0)


@given(st.floats(1e-3, 1e3), st.floats(1.02, 1e6))
def test_labels_of_a_log_axis_never_touch(low: float, ratio: float) -> None:
    high = low * ratio
    values, labels = log_ticks(low, high, "×")
    assert values == sorted(values)
    assert all(low * (1 - 1e-6) <= value <= high * (1 + 1e-6) for value in values)
    ends = [
        (at - CHARACTER_PX * len(label) / 2, at + CHARACTER_PX * len(label) / 2)
        for value, label in zip(values, labels, strict=True)
        for at in [NARROWEST_PX * math.log(value / low) / math.log(ratio)]
    ]
    assert all(right < left for (_, right), (left, _) in itertools.pairwise(ends))
    assert all(
        float(label[:-1]) == pytest.approx(value, rel=0.06)
        for value, label in zip(values, labels, strict=True)
    )


def test_the_axis_of_fast_p_names_its_ends_and_one() -> None:
    values, labels = log_ticks(0.1, 10)
    assert labels == ["0.1", "0.2", "0.5", "1", "2", "5", "10"]
    assert values == pytest.approx([0.1, 0.2, 0.5, 1, 2, 5, 10])
    with pytest.raises(ValueError, match="low < high"):
        log_ticks(0, 1)


@pytest.mark.parametrize(
    ("harness", "variant", "told"),
    [
        ("single-shot", "", "Ours"),
        ("unsorted", "", "Ours"),
        ("agentic", "", "Ours (agentic)"),
        ("unsorted", "with examples", "Ours (with examples)"),
        ("agentic", "with examples", "Ours (agentic, with examples)"),
    ],
)
def test_a_curve_is_named_by_what_somebody_named(harness: str, variant: str, told: str) -> None:
    assert model_rows.label("Ours", harness, variant) == told


@pytest.mark.parametrize("speedups", [[0.2, 0.3], [0.9, 1.2], [3.0, 9.0]])
def test_the_spread_shows_where_the_reference_is(speedups: list[float]) -> None:
    layout = charts.spread(speedups)["layout"]
    (line,) = layout["shapes"]
    assert line["x0"] == line["x1"] == 1
    low, high = layout["xaxis"]["range"]
    assert low < 0 < high

"""Scores are written once, and every surface of a board shows the same rows."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from evaluator import services as queue
from evaluator.harness.version import PROTOCOL_VERSION
from evaluator.models import Attempt
from leaderboard import review, selectors, services
from leaderboard.models import Score
from portal.submissions.models import AuditEvent, Submission
from problems.models import Problem
from tests.evaluator import build
from tests.evaluator.build import staff

pytestmark = pytest.mark.django_db


def scored(result: dict[str, Any] | None = None, *, days_ago: float = 0, **fields: Any) -> Attempt:
    """A submission that went through the queue's own services and got this result."""
    sent = build.submission(**fields)
    host = queue.register_host(name=f"host-{sent.target.slug}", target=sent.target.slug)
    lease = queue.lease(host=host)
    assert lease is not None
    assert lease.submission.pk == sent.pk
    cell = result or build.result()
    assert queue.complete(token=lease.token, result=cell, harness_version=PROTOCOL_VERSION)
    attempt = Attempt.objects.select_related("submission__run__entrant", "submission__target").get(
        pk=lease.attempt_id
    )
    if days_ago:
        attempt.finished_at = timezone.now() - timedelta(days=days_ago)
        attempt.save()
    return attempt


def record(result: dict[str, Any] | None = None, **fields: Any) -> Score:
    return services.record_score(attempt=scored(result, **fields))[0]


def board(**options: Any) -> selectors.ProblemBoard:
    return selectors.problem_board(problem=build.problem(), target=build.target(), size="tiny", **options)


# --- writing ---------------------------------------------------------------------------------------


def test_a_scored_attempt_is_heard_and_recorded_on_commit(django_capture_on_commit_callbacks) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        scored()
    score = Score.objects.get()
    assert (score.speedup, score.speedup_low, score.size, score.ranked) == (2.0, 1.9, "tiny", True)
    assert score.provisional
    assert (score.problem_revision, score.harness_version, score.isolation_grade) == (
        "rev1",
        PROTOCOL_VERSION,
        "full",
    )


def test_recording_twice_changes_nothing() -> None:
    attempt = scored()
    first = services.record_score(attempt=attempt)
    attempt.result = build.result(speedup=99.0)
    again = services.record_score(attempt=attempt)
    assert [s.pk for s in first] == [s.pk for s in again]
    assert Score.objects.get().speedup == 2.0


def test_one_score_per_size() -> None:
    joined = build.result(size="default") | {
        "cells": [build.result(size="default"), build.result(size="large", speedup=3.0)]
    }
    attempt = scored(joined, target=build.card_target())
    services.record_score(attempt=attempt)
    assert {s.size: s.speedup for s in Score.objects.all()} == {"default": 2.0, "large": 3.0}


def test_an_attempt_without_result_is_refused() -> None:
    attempt = scored()
    attempt.exit_reason = "fault"
    with pytest.raises(ValueError, match="no result"):
        services.record_score(attempt=attempt)


@pytest.mark.parametrize(
    ("change", "mode"),
    [
        ({"protocol": "quick"}, "quick"),
        ({"protocol": "quick"}, "score"),
        ({"protocol": "paper"}, "quick"),
        ({"protocol": "check", "timing": None}, "check"),
        ({"input_set": "upstream"}, "score"),
        ({"timing": {"speedup": None}}, "score"),
        ({"timing": {"speedup": 2.0, "speedup_low": 2.1, "speedup_high": 2.2}}, "score"),
        ({"timing": {"speedup": float("inf"), "speedup_low": 1.0, "speedup_high": 2.0}}, "score"),
        ({"verdict": "incorrect"}, "score"),
    ],
)
def test_what_never_ranks(change: dict[str, Any], mode: str) -> None:
    # NaN and infinity are cleaned by the runner before they are stored; here the value arrives raw.
    attempt = scored(mode=mode)
    attempt.result = build.result() | change
    score = services.record_score(attempt=attempt)[0]
    assert not score.ranked
    assert board().rows == []


@pytest.mark.parametrize(
    ("target", "grade", "flags", "ranks"),
    [
        ("cpu4", "full", [], True),
        ("cpu4", "partial", [], True),
        ("cpu4", "none", ["noisy"], True),
        ("h100x4", "full", [], True),
        ("h100x4", "partial", [], False),
        ("h100x4", "full", ["noisy"], False),
    ],
)
def test_official_boards_take_full_and_quiet_only(
    target: str, grade: str, flags: list[str], ranks: bool
) -> None:
    row = build.target() if target == "cpu4" else build.card_target()
    score = record(build.result(isolation_grade=grade, flags=flags, size="default"), target=row)
    assert score.ranked is ranks


def test_the_database_refuses_a_ranked_row_that_is_not_correct_or_timed() -> None:
    score = record()
    for bad in (
        {"correct": False, "verdict": "incorrect"},
        {"protocol": "quick"},
        {"speedup": None},
        {"speedup_low": 3.0},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Score.objects.filter(pk=score.pk).update(**bad)


@pytest.mark.parametrize("flag", ["noisy", "below_resolution"])
def test_what_cannot_be_told_apart_counts_as_a_tie(flag: str) -> None:
    fast = record(build.result(speedup=5.0, flags=[flag]))
    slow = record(build.result(speedup=0.5, flags=[flag]))
    assert (fast.speedup, fast.speedup_low, fast.speedup_high) == (1.0, 1.0, 5.25)
    assert (slow.speedup, slow.speedup_low, slow.speedup_high) == (0.5, 0.475, 0.525)
    assert fast.ranked
    assert fast.utilisation is None
    measured = record(build.result(speedup=1.3))
    rows = board().rows
    assert [row.score_id for row in rows] == [measured.pk, fast.pk, slow.pk]
    assert [(row.place, row.tied) for row in rows] == [(1, False), (2, True), (3, False)]
    attempt = Attempt.objects.get(pk=fast.attempt_id)
    assert attempt.result["timing"]["speedup"] == 5.0  # the measurement itself stays as it was


def test_an_unsteady_measurement_is_no_new_best() -> None:
    (score,) = review.receive(attempt=scored(build.result(speedup=5.0, flags=["noisy"])))
    assert not score.provisional
    (steady,) = review.receive(attempt=scored(build.result(speedup=5.0)))
    assert steady.provisional


# --- ranking ---------------------------------------------------------------------------------------


def test_best_per_entrant_with_ties_and_latest() -> None:
    ann, bob, cy = (build.run(build.entrant(name)) for name in ("ann", "bob", "cy"))
    record(build.result(speedup=4.0), run=ann, days_ago=5)
    record(build.result(speedup=1.5), run=ann, days_ago=1)
    record(build.result(speedup=3.8), run=bob, days_ago=4)
    record(build.result(speedup=2.0), run=cy, days_ago=3)
    best = board()
    assert [(r.place, r.entrant, r.speedup) for r in best.rows] == [
        (1, "ann", 4.0),
        (1, "bob", 3.8),
        (3, "cy", 2.0),
    ]
    assert best.scores == 4
    latest = board(policy="latest")
    assert [(r.entrant, r.speedup) for r in latest.rows] == [("bob", 3.8), ("cy", 2.0), ("ann", 1.5)]


def test_records_are_the_scores_that_rose() -> None:
    for days, speedup in ((5, 1.0), (4, 3.0), (3, 2.0), (2, 3.0), (1, 3.5)):
        record(build.result(speedup=speedup), days_ago=days)
    assert [r.speedup for r in board().history] == [1.0, 3.0, 3.5]


def test_kinds_narrow_the_board() -> None:
    record(run=build.run(build.entrant("m", kind="model")))
    record(run=build.run(build.entrant("p", kind="person")))
    assert [r.entrant for r in board(kind="person").rows] == ["p"]


# --- surfaces --------------------------------------------------------------------------------------


def surfaces(client: Any) -> dict[str, str]:
    """The text of every surface that shows the rows of the board."""
    paths = (
        "/boards/cpu4/",
        "/boards/cpu4/allreduce/",
        "/boards/cpu4/allreduce.csv",
        "/boards/cpu4/allreduce.json",
    )
    return {path: client.get(path).content.decode() for path in paths}


@pytest.mark.parametrize("how", ["disqualified", "hidden", "stale"])
def test_a_row_that_leaves_leaves_every_surface_at_once(client, how: str) -> None:
    score = record(run=build.run(build.entrant("Zebra")))
    Score.objects.update(confirmed_at=timezone.now())  # else it would be measured again on its return
    assert all("Zebra" in text for text in surfaces(client).values())
    if how == "disqualified":
        assert review.disqualify(submission=score.submission, by=staff(), reason="copied") == 1
        assert AuditEvent.objects.filter(action="submission.disqualified", reason="copied").exists()
    elif how == "hidden":
        Submission.objects.update(results_public=False)
    else:
        Problem.objects.update(score_revision="rev2")
    assert not any("Zebra" in text for text in surfaces(client).values())
    if how == "disqualified":
        review.reinstate(submission=score.submission, by=staff(), reason="mistake")
        assert all("Zebra" in text for text in surfaces(client).values())


def test_json_and_csv_carry_the_same_rows(client) -> None:
    for speedup in (1.2, 3.0, 2.0):
        record(build.result(speedup=speedup))
    document = client.get("/boards/cpu4/allreduce.json").json()
    assert [row["speedup"] for row in document["rows"]] == [3.0, 2.0, 1.2]
    assert (document["target"], document["size"], document["problem_revision"]) == ("cpu4", "tiny", "rev1")
    lines = list(csv.DictReader(io.StringIO(client.get("/boards/cpu4/allreduce.csv").content.decode())))
    assert [float(line["speedup"]) for line in lines] == [3.0, 2.0, 1.2]
    assert [line["submission_id"] for line in lines] == [row["submission_id"] for row in document["rows"]]


def test_the_tab_of_a_target_says_what_it_counts(client) -> None:
    record(build.result(speedup=1.2))
    assert '<span class="tabs__count">1 score</span>' in client.get("/boards/cpu4/").content.decode()
    record(build.result(speedup=3.0))
    text = client.get("/boards/cpu4/").content.decode()
    assert '<span class="tabs__count">2 scores</span>' in text
    assert "1 of 1 problems have a score" in text


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@x", "\tx", "\rx"])
def test_no_csv_cell_is_a_formula(client, name: str) -> None:
    record(run=build.run(build.entrant("plain", vendor=name)))
    text = client.get("/boards/cpu4/allreduce.csv").content.decode()
    cells = next(csv.DictReader(io.StringIO(text, newline="")))
    assert cells["vendor"] == f"'{name}"


def test_names_are_escaped_on_pages(client) -> None:
    record(run=build.run(build.entrant("<script>alert(1)</script>")))
    for path in ("/boards/cpu4/", "/boards/cpu4/allreduce/"):
        assert "<script>alert" not in client.get(path).content.decode()


def test_unknown_boards_are_404(client) -> None:
    record()
    assert client.get("/boards/cpu4/nothing/").status_code == 404
    page, data = client.get("/boards/abacus/"), client.get("/boards/abacus/allreduce.json")
    assert (page.status_code, data.status_code) == (404, 404)
    assert "none of: cpu4" in page.content.decode()
    assert data.json()["code"] == "target.not_found"
    assert client.post("/boards/cpu4/allreduce/").status_code == 405


def test_boards_lead_to_the_target_with_most_scores(client) -> None:
    build.card_target()
    record()
    hops = [url for url, _ in client.get("/boards/", follow=True).redirect_chain]
    assert hops == ["/boards/problems/", "/boards/cpu4/"]
    assert client.get("/boards/models/").context["target"].slug == "cpu4", "no run is complete yet"


@pytest.mark.parametrize(
    ("hosts", "opened"), [((), "h100x4"), (("cpu4",), "cpu4"), (("cpu4", "h100x4"), "h100x4")]
)
def test_before_any_score_boards_lead_to_a_served_target_the_official_one_first(
    client, hosts: tuple[str, ...], opened: str
) -> None:
    build.target()
    build.card_target()
    build.target("empty", cells=[])
    for slug in hosts:
        queue.register_host(name=slug, target=slug)
    assert client.get("/boards/problems/").url == f"/boards/{opened}/"
    assert client.get("/boards/models/").context["target"].slug == opened


@pytest.mark.parametrize(
    ("memory", "peaks"),
    [
        ({"peak_bytes": 5, "reference_peak_bytes": 6}, (5, 6)),
        ({"peak_bytes": 5, "reference_peak_bytes": 6, "device_peak_bytes": 70}, (5, 6)),
        (
            {
                "peak_bytes": 5,
                "reference_peak_bytes": 6,
                "device_peak_bytes": 70,
                "reference_device_peak_bytes": 80,
            },
            (70, 80),
        ),
    ],
)
def test_a_board_shows_memory_of_the_cards_where_both_sides_told(
    memory: dict[str, int], peaks: tuple[int, int]
) -> None:
    attempt = scored(build.result(memory=memory))

    (score,) = services.record_score(attempt=attempt)

    assert (score.peak_bytes, score.reference_peak_bytes) == peaks

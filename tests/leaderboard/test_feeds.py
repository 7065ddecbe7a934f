"""What other programs read: API, data set, feed, badges; and an independent recount of the model board."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from math import exp, log
from typing import Any
from xml.etree import ElementTree

import pytest
from django.utils import timezone

from leaderboard import summaries
from leaderboard.badges import badge_svg
from leaderboard.models import Score
from tests.evaluator import build
from tests.leaderboard.test_models import model_run, score

pytestmark = pytest.mark.django_db


def confirmed() -> None:
    """Whatever waits for a second measurement has had it."""
    Score.objects.filter(provisional=True).update(provisional=False, confirmed_at=timezone.now())


@pytest.fixture
def board() -> dict[str, Any]:
    """Three runs of two samples over five problems, with every kind of end."""
    slugs = ["a", "b", "c", "d", "e"]
    for slug in slugs:
        build.problem(slug)
    plan = {
        "one": {("a", 0): 2.0, ("a", 1): 0.7, ("b", 0): 1.3, ("c", 1): 4.0},
        "two": {("a", 0): 1.0, ("b", 0): 1.1, ("b", 1): 1.2},
        "three": {},
    }
    runs = {}
    for name, solved in plan.items():
        run = model_run(name)
        for slug, sample in itertools.product(slugs[:4], (0, 1)):
            score(run, slug, sample=sample, speedup=solved.get((slug, sample)))
        runs[name] = run
    confirmed()
    for run in runs.values():
        summaries.refresh(run=run, target=build.target(), size="tiny")
    return runs


def lines(client: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    text = b"".join(client.get("/boards/export/scores.jsonl").streaming_content).decode()
    card, *rows = [json.loads(line) for line in text.splitlines()]
    return card, rows


def test_the_export_alone_reproduces_the_model_board(client, board) -> None:
    card, rows = lines(client)
    per_run: dict[str, dict[str, list[tuple[bool, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        assert row["verified"]
        per_run[row["entrant"]][row["problem"]].append((row["ranked"], row["speedup"] or 0.0))
    shown = {row["model"]: row for row in client.get("/api/v1/leaderboards/cpu4/models/").json()["rows"]}
    assert set(per_run) == set(shown) == {"one", "two", "three"}
    for name, problems in per_run.items():
        n = max(len(samples) for samples in problems.values())
        for k, p in itertools.product(range(1, n + 1), (0.0, 1.0)):
            total = 0.0
            for slug in card["track"]:
                good = [ok and speedup > p for ok, speedup in problems.get(slug, [])]
                good += [False] * (n - len(good))
                draws = list(itertools.combinations(good, k))
                total += sum(map(any, draws)) / len(draws)
            key = "fast_1_at" if p else "pass_at"
            if str(k) in shown[name][key]:
                assert f"{shown[name][key][str(k)]:.4f}" == f"{total / len(card['track']):.4f}"
        best = [max((s for ok, s in samples if ok), default=None) for samples in problems.values()]
        logs = [log(value) for value in best if value]
        whole = exp(sum(logs) / len(card["track"]))
        assert f"{shown[name]['geometric_mean']['whole']:.4f}" == f"{whole:.4f}"


def test_the_export_names_each_column_and_hides_what_is_private(client, board) -> None:
    from portal.submissions.models import Submission

    card, rows = lines(client)
    assert set(rows[0]) == set(card["columns"])
    one_less = Submission.objects.filter(pk=rows[0]["submission"]).update(results_public=False)
    assert len(lines(client)[1]) == len(rows) - one_less
    text = client.get("/boards/export/data_card.md").content.decode()
    assert all(f"| {name} |" in text for name in card["columns"])


def test_the_api_answers_like_the_page_twins(client, board) -> None:
    assert (
        client.get("/api/v1/leaderboards/cpu4/problems/a/").json() == client.get("/boards/cpu4/a.json").json()
    )
    assert (
        client.get("/api/v1/leaderboards/cpu4/models/").json()["rows"]
        == client.get("/boards/models.json?target=cpu4").json()["rows"]
    )


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("abacus/models/", 404, "target.not_found"),
        ("cpu4/problems/nothing/", 404, "problem.not_found"),
        ("cpu4/models/?size=huge", 400, "size.unknown"),
        ("cpu4/models/?as_of=never", 400, "as_of.invalid"),
        ("cpu4/models/?sort=evil", 400, "sort.unknown"),
        ("cpu4/problems/a/?policy=worst", 400, "policy.unknown"),
    ],
)
def test_the_api_says_what_is_wrong(client, board, path: str, status: int, code: str) -> None:
    answer = client.get(f"/api/v1/leaderboards/{path}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"


def test_the_feed_lists_records_newest_first(client, board) -> None:
    answer = client.get("/boards/cpu4/records.atom")
    tree = ElementTree.fromstring(answer.content)
    titles = [entry.findtext("{*}title") for entry in tree.findall("{*}entry")]
    assert titles == ["c: 4.00× by one", "b: 1.30× by one", "a: 2.00× by one"]


def test_badges(client, board) -> None:
    slug = board["one"].entrant.slug
    value = client.get(f"/boards/models/{slug}/badge.json").json()
    assert value["message"] == f"{100 * value['fast_1']:.1f} % (cpu4, tiny)"
    svg = client.get(f"/boards/models/{slug}/badge.svg")
    assert svg["Content-Type"] == "image/svg+xml"
    assert value["message"] in svg.content.decode()
    nobody = build.entrant("nobody")
    build.submission(run=build.run(nobody))
    assert client.get(f"/boards/models/{nobody.slug}/badge.json").json()["message"] == "not judged"
    ElementTree.fromstring(badge_svg("<a>", '"&"'))

"""What is kept at write time, figures and pages: never older than the last commit, whoever wrote and however."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone

from evaluator.models import Attempt
from leaderboard import cells, model_board, page_cache, ranking, review, selectors, summaries, triggers
from leaderboard.models import BoardCell, RunSummary, Score
from portal.submissions.models import Entrant, ModelRun, Submission
from problems.models import Problem, Target
from tests.evaluator import build
from tests.factories import SPEC
from tests.leaderboard.test_feeds import confirmed
from tests.leaderboard.test_models import model_run, score

pytestmark = pytest.mark.django_db

Write = Callable[[Score], object]

WRITES: dict[str, Write] = {
    "a score is deleted": lambda row: Score.objects.filter(pk=row.pk).delete(),
    "a score waits": lambda row: Score.objects.filter(pk=row.pk).update(provisional=True),
    "a score is replaced": lambda row: Score.objects.filter(pk=row.pk).update(superseded_at=timezone.now()),
    "a score of older rules": lambda row: Score.objects.filter(pk=row.pk).update(harness_version="0"),
    "staff disqualify": lambda row: review.disqualify(
        submission=row.submission, by=build.staff(), reason="x"
    ),
    "its author hides it": lambda row: Submission.objects.filter(pk=row.submission_id).update(
        results_public=False
    ),
    "the problem changes": lambda row: Problem.objects.filter(pk=row.problem_id).update(score_revision="2"),
    "plain SQL": lambda row: connection.cursor().execute(
        "UPDATE leaderboard_score SET superseded_at = created_at WHERE id = %s", [row.pk]
    ),
}
NAMES: dict[str, Write] = {
    "an entrant is renamed": lambda row: Entrant.objects.update(name="Renamed"),
    "a run is vouched for": lambda row: ModelRun.objects.filter(pk=row.run_id).update(verified=False),
    "a target is renamed": lambda row: Target.objects.update(title="Renamed"),
    "a problem is retired": lambda row: Problem.objects.filter(slug="b").update(active=False),
    "something is sent": lambda row: build.submission(run=row.run, problem=row.problem),
    "something ends": lambda row: Submission.objects.update(state="cancelled", verdict=""),
}


def board(problem: str = "a", **options: Any) -> selectors.ProblemBoard:
    return selectors.problem_board(
        problem=Problem.objects.get(slug=problem), target=build.target(), size="tiny", **options
    )


def recount(problem: str = "a") -> list[int]:
    """The board by brute force: ids of scores in order."""
    rows = Score.objects.standing().filter(problem__slug=problem)
    ordered = sorted(rows, key=lambda row: (-(row.speedup or 0), row.created_at, row.pk))
    first: dict[int, int] = {}
    for row in ordered:
        first.setdefault(row.entrant_id, row.pk)
    return list(first.values())


@pytest.fixture
def zebra() -> Score:
    """The best of three entrants on problem `a`, everything computed and stored."""
    for slug in "ab":
        build.problem(slug, spec=dict(SPEC))
    found = [score(model_run(name), "a", speedup=speed) for name, speed in (("x", 2.0), ("Zebra", 9.0))]
    score(found[1].run, "b", speedup=3.0, sample=1)
    score(model_run("y"), "a", speedup=1.5)
    confirmed()
    for run in ModelRun.objects.all():
        summaries.refresh(run=run, target=build.target(), size="tiny")
    cells.ensure(BoardCell.objects.all())
    assert not BoardCell.objects.filter(due=True).exists()
    return found[1]


# --- figures -----------------------------------------------------------------------------------------


def test_cells_agree_with_a_recount_after_random_writes() -> None:
    draw = random.Random(4)
    build.problem("a")
    runs = [build.run(build.entrant(kind=kind)) for kind in ("model", "team", "person", "model")]
    for turn in range(40):
        score(draw.choice(runs), "a", speedup=draw.choice([0.5, 1.0, 1.5, 2.0, 3.0]), sample=turn)
        victim = Score.objects.order_by("?").first()
        assert victim is not None
        change = draw.randrange(4)
        if change == 0:
            Submission.objects.filter(pk=victim.submission_id).update(results_public=draw.random() < 0.5)
        elif change == 1 and victim.ranked:
            Score.objects.filter(pk=victim.pk).update(provisional=draw.random() < 0.5)
        found = board()
        assert [row.score_id for row in found.rows] == recount()
        assert found.scores == Score.objects.standing().count()
        assert len(found.provisional) == len(set(Score.objects.awaiting().values_list("entrant_id")))
    latest = board(policy="latest").rows
    assert sorted(row.score_id for row in latest) == sorted(
        row.score_id for row in ranking.one_per_entrant(cells._standing(Score.objects.all()), "latest")
    )


@pytest.mark.parametrize("what", WRITES)
def test_whatever_takes_a_score_away_takes_it_off_its_board(zebra: Score, what: str) -> None:
    assert board().rows[0].score_id == zebra.pk
    WRITES[what](zebra)
    assert zebra.pk not in [row.score_id for row in board().rows]
    assert [row.score_id for row in board().rows] == recount()
    assert BoardCell.objects.filter(due=False, problem__slug="a").exists(), (
        "the reader stored what it computed"
    )


@pytest.mark.parametrize("what", WRITES)
def test_whatever_changes_a_score_makes_its_run_due_and_no_other(zebra: Score, what: str) -> None:
    WRITES[what](zebra)
    due = set(RunSummary.objects.filter(due=True).values_list("run_id", flat=True))
    # a disqualification also has the next in line measured again
    everything = what in ("its author hides it", "the problem changes", "staff disqualify")
    assert zebra.run_id in due
    assert everything or due == {zebra.run_id}


@pytest.mark.parametrize("what", [*WRITES, *NAMES])
def test_every_write_that_changes_a_board_raises_the_version(zebra: Score, what: str) -> None:
    before = page_cache.board_version()
    (WRITES | NAMES)[what](zebra)
    assert page_cache.board_version() > before


@pytest.mark.parametrize(
    "change",
    [
        lambda: build.problem("c"),
        lambda: Problem.objects.filter(slug="b").update(active=False),
        lambda: Problem.objects.filter(slug="b").update(number=99),
        lambda: Problem.objects.filter(slug="b").update(spec={"track": "extra"}),
    ],
)
def test_another_track_makes_every_run_due(zebra: Score, change: Callable[[], object]) -> None:
    Problem.objects.update(title="only a name")
    assert not RunSummary.objects.filter(due=True).exists()
    change()
    assert RunSummary.objects.filter(due=True).count() == 3


def test_another_protocol_version_makes_everything_due(zebra: Score, monkeypatch) -> None:
    for module in ("cells", "summaries"):
        monkeypatch.setattr(f"leaderboard.{module}.RULES", "next")
    assert BoardCell.objects.filter(cells.due()).count() == BoardCell.objects.count()
    assert RunSummary.objects.filter(summaries.due()).count() == 3


@pytest.mark.parametrize("how", ["the ORM", "SQL"])
def test_a_problem_goes_with_its_scores(zebra: Score, how: str) -> None:
    """Its cell goes in the statement in which its scores do, so no trigger may make one for it."""
    gone = zebra.problem_id
    before = page_cache.board_version()
    if how == "the ORM":
        for row in Score.objects.filter(problem=gone):
            Submission.objects.filter(pk=row.submission_id).delete()
        Problem.objects.filter(pk=gone).delete()
    else:
        with connection.cursor() as cursor:
            for statement in (
                "DELETE FROM leaderboard_boardcell WHERE problem_id = %s",
                "DELETE FROM leaderboard_score WHERE problem_id = %s",
            ):
                cursor.execute(statement, [gone])
            sent = Submission.objects.filter(problem=gone)
            Attempt.objects.filter(submission__in=sent).delete()
            sent.delete()
            cursor.execute("DELETE FROM problems_problem WHERE id = %s", [gone])
    connection.check_constraints()
    assert not BoardCell.objects.filter(problem=gone).exists()
    assert page_cache.board_version() > before
    assert RunSummary.objects.filter(run=zebra.run_id, due=True).exists()
    shown = {row.run_id: row for row in model_board.model_board(
        target=build.target(), size="tiny", filters=model_board.Filters()
    )}  # fmt: skip
    assert shown[zebra.run_id].figures["track"] == 1


def test_triggers_are_made_again_by_migrate_and_survive_being_made_twice(zebra: Score) -> None:
    triggers.before_migrate(using="default")
    triggers.after_migrate(using="default")
    triggers.after_migrate(using="default")
    WRITES["its author hides it"](zebra)
    assert BoardCell.objects.filter(due=True).exists()


def test_pages_of_fifty_know_of_all(client: Client) -> None:
    build.problem("a")
    for number in range(52):
        score(model_run(f"m{number:02}"), "a", speedup=10.0 + number)
    confirmed()
    for run in ModelRun.objects.all():
        summaries.refresh(run=run, target=build.target(), size="tiny")
    first, second = board(page=1), board(page="2")
    assert (len(first.rows), len(second.rows), second.count, second.scores) == (50, 2, 52, 52)
    assert second.leader == first.rows[0]
    assert [row.place for row in second.rows][-1] == board().rows[-1].place
    document = client.get("/boards/cpu4/a.json?page=2").json()
    assert (document["page"], document["pages"], document["entrants"], len(document["rows"])) == (2, 2, 52, 2)
    assert client.get("/boards/cpu4/a.csv").content.decode().count("\n") == 53
    models = client.get("/boards/models.json?target=cpu4&page=2").json()
    assert (models["page"], models["pages"], models["runs"], len(models["rows"])) == (2, 2, 52, 2)


PATHS = {
    "/boards/models/?target=cpu4": 4,
    "/boards/models.json?target=cpu4": 3,
    "/api/v1/leaderboards/cpu4/models/": 3,
    "/boards/cpu4/a/": 3,
    "/boards/cpu4/a.json": 3,
    "/boards/cpu4/": 9,
    "/boards/models/SLUG/?target=cpu4": 7,
    "/boards/models/SLUG.json?target=cpu4": 7,
}


@pytest.mark.parametrize("path", PATHS)
def test_queries_depend_neither_on_entrants_nor_on_submissions(
    client: Client, settings, django_assert_num_queries, path: str
) -> None:
    settings.PAGE_CACHE = False
    build.problem("a")
    run = model_run("m")
    url = path.replace("SLUG", run.entrant.slug)
    for round_of in range(2):
        for number in range(1 + 5 * round_of):
            score(run, "a", speedup=2.0 + number, sample=10 * round_of + number)
            score(model_run(f"m{round_of}{number}"), "a", speedup=2.0 + number)
        confirmed()
        for one in ModelRun.objects.all():
            summaries.refresh(run=one, target=build.target(), size="tiny")
        assert client.get(url).status_code == 200  # computes what is due
        with django_assert_num_queries(PATHS[path]):
            client.get(url)


# --- pages -------------------------------------------------------------------------------------------

SURFACES = (
    "/",
    "/problems/a/",
    "/boards/cpu4/",
    "/boards/cpu4/a/",
    "/boards/cpu4/a.csv",
    "/boards/cpu4/a.json",
    "/boards/cpu4/records.atom",
    "/boards/export/scores.jsonl",
    "/api/v1/leaderboards/cpu4/problems/a/",
    "/api/v1/submissions/",
)
FIGURES = (
    "/boards/models/?target=cpu4",
    "/boards/models.csv?target=cpu4",
    "/boards/models.json?target=cpu4",
    "/boards/models/SLUG/?target=cpu4",
    "/boards/models/SLUG.json?target=cpu4",
    "/boards/models/SLUG/badge.json?target=cpu4",
    "/boards/models/SLUG/badge.svg?target=cpu4",
    "/boards/taxonomy/?target=cpu4",
    "/boards/compare/?target=cpu4&run=RUN&run=OTHER",
    "/api/v1/leaderboards/cpu4/models/",
)


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return b"".join(answer).decode()


@pytest.mark.parametrize(
    "what", ["staff disqualify", "its author hides it", "a score is replaced", "plain SQL"]
)
def test_a_row_that_goes_goes_from_every_warm_page_at_once(client: Client, zebra: Score, what: str) -> None:
    slug, run, link = zebra.run.entrant.slug, zebra.run_id, str(zebra.submission_id)
    other = ModelRun.objects.exclude(pk=run).first()
    assert other is not None
    shows_row = {path: "Zebra" if path != "/api/v1/submissions/" else link for path in SURFACES}
    figures = [
        path.replace("SLUG", slug).replace("RUN", str(run)).replace("OTHER", str(other.pk))
        for path in FIGURES
    ]
    for path, word in shows_row.items():
        for _ in "twice":
            assert word in text(client, path), path
    before = {path: text(client, path) for path in figures for _ in "twice"}
    # only the score of problem `a` goes; the run keeps that of `b`, which must not be named on a's pages
    WRITES[what](zebra)
    keeps = {"/", "/boards/cpu4/", "/boards/cpu4/records.atom", "/boards/export/scores.jsonl"}
    for path, word in shows_row.items():
        if what in ("a score is replaced", "plain SQL") and path in {"/", "/api/v1/submissions/"}:
            continue  # the submission itself stays
        now = text(client, path)
        assert (link if path in keeps else word) not in now, path
    for path in figures:
        assert text(client, path) != before[path], path


def test_a_warm_page_costs_one_query_and_the_same_bytes(
    client: Client, zebra: Score, django_assert_num_queries
):
    for path in ("/boards/cpu4/a/", "/boards/models/?target=cpu4", "/boards/cpu4/a.csv"):
        first = client.get(path)
        with django_assert_num_queries(1):
            again = client.get(path)
        assert again.content == first.content
        assert {**again.headers} | {"X-Request-Id": ""} == {**first.headers} | {"X-Request-Id": ""}
        assert "Cookie" in again.get("Vary", "") or not path.endswith("/")
        same = client.get(path, headers={"If-None-Match": first["ETag"]})
        assert (same.status_code, same.content) == (304, b"")


def test_a_page_that_another_process_kept_is_taken_and_kept_near(
    client: Client, zebra: Score, django_assert_num_queries
) -> None:
    path = "/boards/cpu4/a/"
    first = client.get(path)
    for gone in ("near", "pages"):  # this process forgets; then the processes' common cache does
        caches[gone].clear()
        with django_assert_num_queries(1):
            assert client.get(path).content == first.content
    caches["near"].clear()
    with pytest.raises(pytest.fail.Exception), django_assert_num_queries(1):
        client.get(path)


def test_pages_of_people_are_neither_kept_nor_shown_to_others(zebra: Score) -> None:
    person, nobody = Client(), Client()
    user = build.user("grace-hopper")
    person.force_login(user)
    path = "/boards/cpu4/a/"
    assert "grace-hopper" in text(person, path)
    assert "grace-hopper" not in text(nobody, path)
    assert "grace-hopper" in text(person, path), "the page kept for others is not answered to a person"
    person.logout()
    assert "grace-hopper" not in text(person, path)


def test_a_waiting_message_is_shown_once_and_not_kept(zebra: Score) -> None:
    from django.contrib import messages
    from django.http import HttpResponse
    from django.test import RequestFactory

    client, path = Client(), "/boards/cpu4/a/"
    text(client, path)
    request = RequestFactory().get("/")
    request.session = client.session
    request._messages = messages.storage.cookie.CookieStorage(request)
    messages.info(request, "For your eyes only")
    answer = HttpResponse()
    get_messages(request).update(answer)
    client.cookies["messages"] = answer.cookies["messages"].value
    assert "For your eyes only" in text(client, path)
    assert "For your eyes only" not in text(Client(), path)


def test_what_may_not_be_kept_is_not(client: Client, zebra: Score, django_assert_num_queries) -> None:
    for path in ("/boards/nothing/", "/boards/", "/boards/export/scores.jsonl", "/status/"):
        client.get(path)
        assert "ETag" not in client.get(path).headers, path
    long = f"/boards/cpu4/a/?page=1&x={'y' * 400}"
    assert "ETag" not in client.get(long).headers
    assert "ETag" not in client.get("/boards/cpu4/a/", headers={"Authorization": "Token x"}).headers


def test_hosts_and_queries_have_pages_of_their_own(client: Client, zebra: Score) -> None:
    plain, latest = (text(client, f"/boards/cpu4/a/{query}") for query in ("", "?policy=latest"))
    assert plain != latest
    other = client.get("/", headers={"Host": "localhost"}).content.decode()
    assert "http://localhost/api" in other
    assert "http://localhost/api" not in text(client, "/")


def test_the_api_counts_a_kept_answer_against_the_limit(
    client: Client, zebra: Score, monkeypatch, django_assert_num_queries
) -> None:
    monkeypatch.setattr("portal.core.throttles.now", lambda: 1_000_000_000.0)
    monkeypatch.setattr("portal.core.throttles.rate_of", lambda scope: "3/min")
    path = "/api/v1/leaderboards/cpu4/problems/a/"
    first = client.get(path)
    with django_assert_num_queries(1):
        again = client.get(path)
    assert (again.content, again["ETag"]) == (first.content, first["ETag"])
    assert again["Content-Type"] == "application/json"
    same = client.get(path, headers={"If-None-Match": first["ETag"]})
    assert same.status_code == 304
    left = [answer["RateLimit"].split("r=")[1][0] for answer in (first, again, same)]
    assert left == ["2", "1", "0"]
    refused = client.get(path)
    assert (refused.status_code, refused["RateLimit"].split("r=")[1][0]) == (429, "0")
    assert client.get(path, REMOTE_ADDR="203.0.113.9").status_code == 200


def test_the_api_answers_in_json_or_refuses(client: Client, zebra: Score) -> None:
    path = "/api/v1/leaderboards/cpu4/problems/a/"
    for _ in "twice":
        assert client.get(path, headers={"Accept": "application/json"}).status_code == 200
        assert client.get(path, headers={"Accept": "text/html"}).status_code == 406


@pytest.mark.parametrize("path", ["/embed/models/?target=cpu4", "/embed/cpu4/a/record/"])
def test_a_framed_chart_is_kept_until_the_board_changes(
    client: Client, zebra: Score, django_assert_num_queries, path: str
) -> None:
    first = client.get(path)
    with django_assert_num_queries(1):
        again = client.get(path)
    assert again.content == first.content
    assert "frame-ancestors *" in again["Content-Security-Policy"]
    assert "X-Frame-Options" not in again
    WRITES["plain SQL"](zebra)
    assert client.get(path).content != first.content


def test_the_date_filter_compares_days_of_runs_without_one(zebra: Score) -> None:
    ModelRun.objects.filter(pk=zebra.run_id).update(date=None)

    def shown(day: date) -> set[str]:
        filters = model_board.Filters(as_of=day)
        return {
            row.model for row in model_board.model_board(target=build.target(), size="tiny", filters=filters)
        }

    assert "Zebra" in shown(date.today())
    assert "Zebra" not in shown(date(2020, 1, 1))


def test_a_deployment_with_other_measurements_shares_no_page_with_the_one_before(
    tmp_path: Path, settings: Any
) -> None:
    folder = tmp_path / "docs" / "measurements"
    folder.mkdir(parents=True)
    settings.BASE_DIR = tmp_path

    def version() -> str:
        page_cache.code_version.cache_clear()
        return page_cache.code_version()

    try:
        before = version()
        (folder / ".#h.md").symlink_to("nowhere")
        assert version() == before, "an editor's lock is no file"
        (folder / "h_samples_20260101.json").write_text("[]")
        assert version() != before
    finally:
        page_cache.code_version.cache_clear()

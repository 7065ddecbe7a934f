"""What pages say and send: verdict first, privacy, live part, headers, vendored files, documents."""

import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from django.conf import settings as django_settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from evaluator.models import Attempt
from leaderboard import services
from leaderboard.models import Score
from portal.core import units
from portal.pages import documents, figures, submission_page
from portal.pages.words import HEADLINES, TONES
from portal.submissions.models import Submission
from portal.submissions.states import State, Verdict
from problems.registry import all_problems
from tests import factories

pytestmark = pytest.mark.usefixtures("rings")
ROOT = Path(django_settings.BASE_DIR)


def page_of(client: Client, row: Submission, part: str = "") -> str:
    return client.get(f"/submissions/{row.pk}/{part}").content.decode()


@pytest.mark.django_db
def test_the_verdict_comes_first_then_why_then_what_to_do(client: Client) -> None:
    author = factories.UserFactory()
    wrong = [
        {
            "rank": 1,
            "ok": False,
            "output": "out",
            "first_wrong": {"index": [0, 17], "expected": "-1.625", "got": "0.5", "wrong": 9, "total": 2048},
        }
    ]
    row = factories.judged(
        author,
        "incorrect",
        code="incorrect.value",
        message="Rank 1: out differs.",
        result={"ranks": wrong, "rank": 1},
    )
    client.force_login(author)
    text = page_of(client, row)
    order = [
        "Wrong answer",
        "Rank 1: out differs.",
        "What to do:",
        "incorrect.value",
        "[0, 17]",
        "-1.625",
        "9 of 2,048",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.django_db
@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_page_without_surprises(client: Client, verdict: Verdict) -> None:
    assert HEADLINES[verdict] in page_of(client, factories.judged(verdict=verdict)) or verdict == "correct"
    assert verdict in TONES


@pytest.mark.django_db
@pytest.mark.parametrize(
    "result", [{}, {"ranks": None, "timing": None, "roofline": None, "flags": [], "environment": {}}]
)
def test_a_result_of_another_shape_is_no_500(client: Client, result: dict[str, Any]) -> None:
    row = factories.judged()
    attempt = row.attempts.get()
    attempt.result = result
    attempt.save()
    assert client.get(f"/submissions/{row.pk}/").status_code == 200
    assert client.get(f"/api/v1/submissions/{row.pk}/").status_code == 200


@pytest.mark.django_db
def test_correct_says_faster_slower_or_the_same(client: Client) -> None:
    def text(speedup: float, low: float, high: float) -> str:
        timing = {
            "speedup": speedup,
            "speedup_low": low,
            "speedup_high": high,
            "solution_ms": 1.0,
            "reference_ms": speedup,
        }
        return page_of(client, factories.judged(result={"timing": timing}))

    assert "1.51× faster" in text(1.51, 1.4, 1.6)
    assert "slower than the reference" in text(0.5, 0.4, 0.6)
    assert "as fast as the reference" in text(1.02, 0.97, 1.1)


@pytest.mark.django_db
def test_memory_has_the_units_of_the_boards(client: Client) -> None:
    memory = {"peak_bytes": 1_864_757_248, "reference_peak_bytes": 215_000_000}
    text = page_of(client, factories.judged(result={"memory": memory}))
    assert "link bound" in text
    assert "nvlink" not in text, "ranks of a CPU have no NVLink"
    assert "1.7 GiB<small>reference 205 MiB</small>" in text


@pytest.mark.django_db
def test_a_time_on_cards_is_shown_by_every_clock_it_comes_from(client: Client) -> None:
    timing = {
        "speedup": 1.5,
        "speedup_low": 1.4,
        "speedup_high": 1.6,
        "solution_ms": 0.05,
        "reference_ms": 0.075,
        "card": {
            "on_the_card": {"value": 1.49, "low": 1.4, "high": 1.6},
            "stream_cost_ms": 0.003, "gate_cost_ms": 0.3, "solution_stream_ms": 0.052, "reference_stream_ms": 0.077,
            "solution_gate_ms": 0.351, "reference_gate_ms": 0.376, "solution_events_ms": None,
        },
    }  # fmt: skip
    text = page_of(client, factories.judged(result={"timing": timing}))
    section = text[text.index("By which clock") :]
    section = section[: section.index("</section>")]
    for shown in ("50.0 µs", "75.0 µs", "52.0 µs", "351 µs", "3.00 µs", "300 µs", "1.49×"):
        assert shown in section
    assert "By which clock" not in page_of(client, factories.judged())


@pytest.mark.django_db
def test_what_never_ran_offers_no_replay_and_no_word_of_a_compiler(client: Client) -> None:
    author = factories.UserFactory()
    client.force_login(author)
    code = "build_error.needs_cuda"
    row = factories.judged(author, verdict="build_error", code=code)
    assert "Run the same calls again" in page_of(client, row)
    attempt = row.attempts.get()
    attempt.stages = [entry for entry in attempt.stages if entry["stage"] in ("received", "building")]
    attempt.save()
    text = page_of(client, row)
    assert "Run the same calls again" not in text
    assert "No compiler ran." in text
    assert "first error is above" not in text
    compiled = factories.judged(author, verdict="build_error", code="build_error.compiler")
    assert "first error is above" in page_of(client, compiled)


@pytest.mark.django_db
def test_advice_fits_the_target_and_names_no_log_that_is_not_there(client: Client) -> None:
    author = factories.UserFactory()
    client.force_login(author)
    cards = factories.TargetFactory(slug="h200x2", spec={"device": "cuda", "timed": True})
    late = factories.judged(author, verdict="build_error", code="build_error.needs_cuda", target=cards)
    text = page_of(client, late)
    assert "compiles what the file builds at its top" in text
    assert "Send it for a target with cards" not in text
    for code in ("contract_error.no_solution", "contract_error.shared_memory"):
        text = page_of(client, factories.judged(author, verdict="contract_error", code=code))
        assert "What to do:" in text
        assert "order, shape and dtype" not in text, "nothing of another shape was returned"
    code = "runtime_error.host_fault_repeated"
    given_up = factories.submission(author, state="done", verdict="runtime_error", code=code)
    text = page_of(client, given_up)
    assert "There is no log" in text
    assert "The log below" not in text


@pytest.mark.django_db
def test_what_ended_before_the_first_call_at_a_second_size_offers_no_replay_of_that(client: Client) -> None:
    author = factories.UserFactory()
    client.force_login(author)
    row = factories.judged(author, verdict="runtime_error", code="runtime_error.import")
    attempt = row.attempts.get()
    for entry in attempt.stages:
        entry["detail"] = {"size": "default"}
    attempt.result["size"] = "large"
    attempt.save()
    assert "Run the same calls again" not in page_of(client, row)
    attempt.stages.append(attempt.stages[3] | {"detail": {"size": "large"}})
    attempt.save()
    assert "Run the same calls again" in page_of(client, row)


@pytest.mark.django_db
def test_the_last_live_part_brings_what_a_reload_would(client: Client) -> None:
    author = factories.UserFactory()
    row = factories.judged(author)
    client.force_login(author)
    whole, live = page_of(client, row), page_of(client, row, "live/")
    for part in ("Run the same calls again", "Withdraw it", "Boards it counts for:"):
        assert part in whole
        assert part in live
    assert '<div id="after" hx-swap-oob="true">' in live
    title = re.search("<title>.*</title>", whole)
    assert title is not None
    assert title[0] in live  # htmx takes it for the tab
    assert "1.51× faster" in title[0]
    assert whole.count("<title>") == 1
    assert whole.count('id="after"') == 1
    assert "hx-swap-oob" not in whole
    waiting = factories.submission(author)
    assert 'id="after"' not in page_of(client, waiting, "live/")
    assert "Boards it counts for if it is correct" in page_of(client, waiting)
    assert "Boards it counts for" not in page_of(client, factories.judged(author, verdict="incorrect"))


@pytest.mark.django_db
def test_who_may_not_see_a_file_learns_neither_its_name_nor_its_equals(client: Client) -> None:
    author, other = factories.UserFactory(), factories.UserFactory()
    row = factories.judged(author, source_name="my_secret_trick.py")
    factories.judged(other, source_name="stolen.py")
    for viewer, sees in ((None, False), (other, False), (author, True)):
        client.logout()
        if viewer:
            client.force_login(viewer)
        text = page_of(client, row) + client.get(f"/api/v1/submissions/{row.pk}/").content.decode()
        assert ("my_secret_trick.py" in text) == sees
        assert "The same file, sent before or after" not in text
    row.source_public = True
    row.save()
    assert "my_secret_trick.py" in client.get(f"/api/v1/submissions/{row.pk}/").content.decode()


@pytest.mark.django_db
def test_a_problem_is_found_by_its_number(client: Client) -> None:
    problem = factories.ProblemFactory()
    assert client.get(f"/problems/{problem.number}/")["Location"] == problem.get_absolute_url()
    assert client.get("/problems/999/").status_code == 404


@pytest.mark.django_db
def test_only_the_author_sees_source_and_log(client: Client) -> None:
    author = factories.UserFactory()
    row = factories.judged(author, text="def solution(x):\n    return x  # my trick\n")
    for viewer, sees in ((None, False), (factories.UserFactory(), False), (author, True)):
        client.logout()
        if viewer:
            client.force_login(viewer)
        for part in ("", "live/"):
            text = page_of(client, row, part)
            assert ("my trick" in text) == (sees and part == "")
            assert ("hello from the secret log" in text) == sees


@pytest.mark.django_db
def test_the_live_part_asks_again_slower_without_news_and_stops_at_the_end(client: Client) -> None:
    row = factories.submission(state="running", stage="timing")
    first = page_of(client, row, "live/")
    assert "delay:1.0s" in first
    url = re.search(r'hx-get="([^"]+)"', first)
    assert url is not None
    later = client.get(url[1].replace("&amp;", "&")).content.decode()
    assert "delay:1.2s" in later
    Submission.objects.filter(pk=row.pk).update(stage="reporting")
    assert "delay:1.0s" in client.get(url[1].replace("&amp;", "&")).content.decode()
    Submission.objects.filter(pk=row.pk).update(state="done", verdict="correct", stage="")
    assert "hx-get" not in page_of(client, row, "live/")


@pytest.mark.django_db
def test_the_form_sends_a_file_and_shows_errors_beside_their_field(client: Client) -> None:
    factories.ProblemFactory()
    factories.TargetFactory()
    client.force_login(factories.UserFactory())
    fields = {"problem": "allreduce", "target": "cpu4", "mode": "score"}
    bad = client.post("/submit/", {**fields, "file": SimpleUploadedFile("s.py", b"def solution(:")})
    assert bad.status_code == 422
    assert "Line 1" in str(bad.context["form"].errors["file"])
    both = client.post("/submit/", {**fields, "source": "x", "file": SimpleUploadedFile("s.py", b"x")})
    assert "Send one of them" in str(both.context["form"].errors["source"])
    empty = client.post("/submit/", {**fields, "file": SimpleUploadedFile("s.py", b"")})
    assert "empty" in str(empty.context["form"].errors["file"])
    good = client.post("/submit/", {**fields, "source": factories.GOOD.replace("\n", "\r\n")})
    row = Submission.objects.get()
    assert (good.status_code, good["Location"]) == (302, f"/submissions/{row.pk}/")
    assert row.source.read() == factories.GOOD.encode(), "the browser's line ends are not the author's"
    windows = factories.GOOD.replace("\n", "\r\n").encode()
    client.post("/submit/", {**fields, "file": SimpleUploadedFile("s.py", windows)})
    sent = Submission.objects.exclude(pk=row.pk).get()
    assert sent.source.read() == windows, "a file stays as it is, byte for byte"


@pytest.mark.django_db
def test_the_way_to_the_form_says_where_it_leads_and_the_terminal_names_what_was_chosen(
    client: Client,
) -> None:
    factories.ProblemFactory()
    factories.ProblemFactory(slug="ring_attention")
    factories.TargetFactory()
    sent = client.get("/submit/?problem=ring_attention", follow=True).content.decode()
    assert "<h1>Log in to submit a file</h1>" in sent
    assert "<h1>Log in</h1>" in client.get("/accounts/login/?next=/submissions/").content.decode()
    client.force_login(factories.UserFactory())
    for query, problem in (("", "allreduce"), ("?problem=ring_attention", "ring_attention")):
        text = client.get(f"/submit/{query}").content.decode()
        assert f"-F problem={problem} \\\n  -F target=cpu4 \\\n" in text


@pytest.mark.django_db
def test_submit_again_fills_the_form_from_the_own_submission_only(client: Client) -> None:
    author = factories.UserFactory()
    row = factories.judged(author, text="def solution(x):\n    return x  # mine\n", mode="quick")
    client.force_login(author)
    mine = client.get(f"/submit/?from={row.pk}").content.decode()
    assert "# mine" in mine
    assert re.search(r'value="quick"[^>]*checked', mine)
    client.force_login(factories.UserFactory())
    theirs = client.get(f"/submit/?from={row.pk}").content.decode()
    assert "# mine" not in theirs


@pytest.mark.django_db
def test_a_file_sent_for_a_model_names_it_and_its_boards(client: Client) -> None:
    factories.ProblemFactory()
    factories.TargetFactory()
    author = factories.UserFactory()
    client.force_login(author)
    fields = {"problem": "allreduce", "target": "cpu4", "mode": "score", "source": factories.GOOD}
    sent = client.post("/submit/", {**fields, "model": "Newcomer 7B"})
    text = client.get(sent["Location"]).content.decode()
    assert re.search(r'for <a href="/runs/\d+/">Newcomer 7B</a>', text)
    assert "/boards/models/?target=cpu4&amp;runs=community" in text
    again = client.get(f"/submit/?from={Submission.objects.get().pk}").content.decode()
    assert re.search(r'name="model"[^>]*value="Newcomer 7B"|value="Newcomer 7B"[^>]*name="model"', again)
    refused = client.post("/submit/", {**fields, "model": "?"})
    assert "letters or digits" in str(refused.context["form"].errors["model"])


@pytest.mark.django_db
def test_my_work_filters(client: Client) -> None:
    author = factories.UserFactory()
    factories.judged(author)
    factories.judged(author, "incorrect")
    factories.submission(author)
    factories.judged()
    client.force_login(author)
    counts = {
        q: len(client.get(f"/submissions/?{q}").context["page"])
        for q in ("", "state=correct", "state=live", "q=none")
    }
    assert counts == {"": 3, "state=correct": 1, "state=live": 1, "q=none": 0}


@pytest.mark.django_db
def test_the_home_page_asks_nobody_to_sign_up_twice(client: Client) -> None:
    assert "Sign up</a>, then make a key" in client.get("/").content.decode()
    client.force_login(factories.UserFactory())
    text = client.get("/").content.decode()
    assert "Sign up" not in text
    assert "Make a key under" in text


@pytest.mark.django_db
def test_my_work_has_figures_and_is_sorted_by_them(client: Client) -> None:
    author = factories.UserFactory()
    wrong = factories.judged(author, "incorrect")
    slow, fast = factories.judged(author), factories.judged(author)
    for row, speedup in ((slow, 0.8), (fast, 2.0)):
        services.record_score(attempt=row.attempts.get())
        Score.objects.filter(submission=row).update(speedup=speedup, speedup_low=0.5, speedup_high=3)
    client.force_login(author)
    orders = {
        sort: [row.pk for row in client.get(f"/submissions/?sort={sort}").context["page"]]
        for sort in ("", "oldest", "fastest")
    }
    assert orders == {
        "": [fast.pk, slow.pk, wrong.pk],
        "oldest": [wrong.pk, slow.pk, fast.pk],
        "fastest": [fast.pk, slow.pk, wrong.pk],
    }
    page = client.get("/submissions/?sort=fastest").content.decode()
    assert re.search('<td class="num nowrap">2.00×.*<td class="num nowrap">410 µs</td>', page)
    assert ">Clear</a>" not in page
    assert ">tie</span>" not in page
    Score.objects.filter(submission=slow).update(speedup=1.0, flags=["noisy"])
    assert re.search(
        r'1.00× <span class="tag" title="[^"]*unsteady[^"]*">tie</span>',
        client.get("/submissions/").content.decode(),
    )
    for speedup, floor, tie in ((1.03, 0.1, True), (0.9, 0.1, True), (0.89, 0.1, False), (1.03, 0.02, False)):
        Score.objects.filter(submission=slow).update(speedup=speedup, noise_floor=floor, flags=[])
        assert (">tie</span>" in client.get("/submissions/").content.decode()) is tie
    assert client.get("/submissions/?sort=luck").status_code == 400


@pytest.mark.django_db
def test_my_work_is_narrowed_to_a_run_and_counts_the_batch_lane(client: Client) -> None:
    author = factories.UserFactory()
    single = factories.judged(author=author)
    client.force_login(author)
    assert 'name="run"' not in client.get("/submissions/").content.decode()

    run = factories.model_run(author)
    queued = factories.submission(author, run=run, lane=Submission.Lane.BATCH, state=State.QUEUED)
    page = client.get("/submissions/")
    assert "0 waiting or running and 1 in the batch lane" in page.content.decode()
    assert {row.pk for row in page.context["page"]} == {single.pk, queued.pk}
    narrowed = client.get(f"/submissions/?run={run.pk}")
    assert [row.pk for row in narrowed.context["page"]] == [queued.pk]
    assert ">Clear</a>" in narrowed.content.decode()
    assert "<dt>In the batch lane</dt>" in client.get("/submit/").content.decode()

    other = factories.model_run(factories.UserFactory())
    for wrong in (other.pk, "x", 10**30):
        answer = client.get(f"/submissions/?run={wrong}")
        assert answer.status_code == 400
        assert "is the id of no run of yours" in answer.content.decode()


@pytest.mark.django_db
def test_the_page_says_what_it_costs_to_cancel_what_runs(client: Client) -> None:
    row = factories.submission(state=State.RUNNING, stage="timing")
    client.force_login(row.author)
    assert "cancelled now, it counts as a failed sample" in page_of(client, row)
    for fields in ({"state": State.QUEUED, "stage": ""}, {"state": State.RUNNING, "mode": "quick"}):
        Submission.objects.filter(pk=row.pk).update(**fields)
        assert "cancelled now" not in page_of(client, row)


@pytest.mark.django_db
def test_lists_do_not_ask_more_the_longer_they_are(
    client: Client, django_assert_max_num_queries: Any
) -> None:
    author = factories.UserFactory()
    for _ in range(12):
        factories.judged(author)
    with django_assert_max_num_queries(3):
        client.get("/")
    client.force_login(author)
    with django_assert_max_num_queries(12):
        client.get("/submissions/")


def html_pages(client: Client) -> Iterator[tuple[str, Any]]:
    author = factories.UserFactory(is_staff=True)
    done, live = factories.judged(author), factories.submission(author)
    factories.ProblemFactory()
    client.force_login(author)
    for path in (
        "/", "/problems/", "/problems/allreduce/", "/submit/", "/runs/", "/runs/new/", "/submissions/",
        f"/submissions/{done.pk}/",
        f"/submissions/{live.pk}/", "/docs/", "/docs/participants/", "/docs/api/", "/status/", "/accounts/tokens/",
        "/accounts/password/", "/nothing-here/",
    ):  # fmt: skip
        yield path, client.get(path)
    yield "/accounts/signup/", Client().get("/accounts/signup/")


@pytest.mark.django_db
def test_no_page_needs_inline_code_or_another_host(client: Client) -> None:
    for path, response in html_pages(client):
        text = response.content.decode()
        policy = response["Content-Security-Policy"]
        assert "unsafe" not in policy, path
        assert "default-src 'none'" in policy
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|<script(?![^>]*\ssrc=)", text), (
            path
        )
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text.replace("http://testserver", "")), path
        assert text.count("<h1") == 1, path
        assert "<title>" in text
        assert '<html lang="en"' in text


@pytest.mark.django_db
def test_health_and_readiness(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz?probe=17").json() == {"status": "ok"}  # a load balancer may add one
    assert client.get("/readyz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_status_shows_hosts_and_the_line(client: Client) -> None:
    factories.judged()
    factories.submission()
    text = client.get("/status/").content.decode()
    assert "host-a" in text
    assert "cpu4" in text


def test_errors_have_pages_and_problems(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = client.get("/nothing/")
    assert (missing.status_code, "Nothing here" in missing.content.decode()) == (404, True)
    assert missing["X-Request-Id"] in missing.content.decode()

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("portal.pages.views.evaluator.hosts", broken)
    client.raise_request_exception = False
    failed = client.get("/status/")
    assert (failed.status_code, "Our fault" in failed.content.decode()) == (500, True)
    assert "boom" not in failed.content.decode()
    assert failed["X-Request-Id"] in failed.content.decode()


def test_a_database_that_is_locked_is_no_fault_but_a_reason_to_try_again(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any, **__: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("portal.pages.views.evaluator.hosts", locked)
    monkeypatch.setattr("portal.submissions.api.submit", locked)
    page = client.get("/status/")
    assert (page.status_code, "try again" in page.content.decode()) == (503, True)
    client.force_login(factories.UserFactory())
    sent = {"source": factories.GOOD, "problem": "allreduce", "target": "cpu4"}
    answer = client.post("/api/v1/submissions/", sent, content_type="application/json")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["code"] == "database.unavailable"


@pytest.mark.parametrize("folder", ["static/vendor", "tests/vendor"])
def test_vendored_files_are_what_their_list_says(folder: str) -> None:
    rows = re.findall(
        r"^\| (\S+/\S+) \|.*\| ([0-9a-f]{64}) \|$", (ROOT / folder / "VENDOR.md").read_text(), re.M
    )
    assert rows
    for name, digest in rows:
        path = ROOT / folder / name
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
        assert (path.parent / "LICENSE").exists()
    scripts = {
        str(p.relative_to(ROOT / folder)) for p in (ROOT / folder).rglob("*") if p.suffix in (".js", ".css")
    }
    assert scripts == {name for name, _ in rows}


def test_pages_stay_small() -> None:
    import gzip

    files = [
        "static/css/site.css",
        "static/vendor/htmx-4.0.1/htmx.min.js",
        "static/js/check_source.js",
        "static/js/copy.js",
    ]
    assert sum(len(gzip.compress((ROOT / f).read_bytes())) for f in files) < 60_000


def test_documents_are_sanitised(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api.md").write_text(
        "# Title\n\n<script>x</script> [a](javascript:alert(1)) ![i](x)\n\n## Part one\n\n```python\nx\n```\n"
    )
    document = documents.load("api")
    assert document is not None
    assert document.title == "Title"
    assert "<script" not in document.html
    assert 'href="javascript' not in document.html
    assert 'id="part-one"' in document.html
    assert documents.load("judge") is None
    assert documents.load("../settings") is None


@pytest.mark.django_db
def test_advice_is_for_the_author_and_promises_nothing_that_is_not_there(client: Client) -> None:
    crash = factories.judged(verdict="runtime_error", code="runtime_error.sigsegv")
    assert "What to do:" not in page_of(client, crash), "a stranger cannot do it"
    client.force_login(crash.author)
    text = page_of(client, crash)
    assert "What to do:" in text
    assert "marked in the source" not in text


@pytest.mark.django_db
def test_where_the_ranks_stood_comes_before_how_data_moved(client: Client) -> None:
    result = {"stacks": [{"rank": 0, "text": "in all_reduce"}], "movement": {"told": "gloo"}, "kernels": [{}]}
    row = factories.judged(verdict="timeout", code="timeout.deadlock", result=result)
    client.force_login(row.author)
    text = page_of(client, row)
    assert text.index("Where each rank stood") < text.index("How it moves data")
    assert "raised, see the log" not in text


@pytest.mark.django_db
def test_the_rank_that_raised_is_named_where_the_others_stood(client: Client) -> None:
    result = {"stacks": [{"rank": 0, "text": "in all_reduce"}], "rank": 2}
    row = factories.judged(verdict="runtime_error", code="runtime_error.exception", result=result)
    client.force_login(row.author)
    text = page_of(client, row)
    assert "Rank 2 raised, see the log." in text
    assert "<details><summary>Rank 0</summary>" in text  # the log, which is open, has what matters


@pytest.mark.django_db
def test_a_noisy_result_says_which_boards_take_it_and_is_led_to_no_other(client: Client) -> None:
    cards = factories.TargetFactory(slug="h100x4", backend="nccl", spec={"device": "cuda", "official": True})
    for target, leads in ((factories.TargetFactory(), True), (cards, False)):
        text = page_of(client, factories.judged(target=target, result={"flags": ["noisy"]}))
        assert "On cards such a score enters no board; on cpu4 it enters as no faster" in text
        assert ("Boards it counts for" in text) == leads


@pytest.mark.django_db
def test_a_score_that_was_measured_again_says_why(client: Client) -> None:
    timing = {
        "solution_ms": 0.4,
        "reference_ms": 0.6,
        "discarded": [{"why": ["drift", "slowed"]}],
        "unsteady": [],
    }
    row = factories.judged(result={"timing": timing})
    client.force_login(row.author)
    text = page_of(client, row)
    assert "Round 1 did not count: the reference alone took another time after it than before it;" in text
    assert "counts with doubt" not in text

    doubted = factories.judged(result={"timing": timing | {"unsteady": ["disturbed"]}})
    client.force_login(doubted.author)
    assert "The last round counts with doubt: the submission's processes were" in html.unescape(
        page_of(client, doubted)
    )


def test_every_document_is_served_and_named_in_the_menu(client: Client, db: None) -> None:
    menu = client.get("/docs/").content.decode()
    found = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "measurements").glob("*.md")]
    names = [str(path.relative_to(ROOT / "docs").with_suffix("")) for path in found]
    for name in [*names, "security", "contributing", "changelog"]:
        address = f"/docs/{name}/"
        assert client.get(address).status_code == 200, address
        assert f'href="{address}"' in menu


def test_a_document_that_another_names_is_one_step_away(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs" / "measurements").mkdir(parents=True)
    (tmp_path / "docs" / "judge.md").write_text(
        "`docs/measurements/h200x2.md`, [same](judge.md), `gone.md`, `a.py`"
    )
    (tmp_path / "docs" / "measurements" / "h200x2.md").write_text(
        "`h200x1.md` [so](../judge.md) [it](judge.md#how)"
    )
    judge, measured = documents.load("judge"), documents.load("measurements/h200x2")
    assert judge is not None
    assert measured is not None
    assert '<a href="/docs/measurements/h200x2/"><code>docs/measurements/h200x2.md</code></a>' in judge.html
    assert "<code>gone.md</code>" in judge.html
    assert judge.html.count("<a ") == 2
    assert '<a href="/docs/judge/">same</a>' in judge.html
    assert '<a href="/docs/judge/">so</a>' in measured.html
    assert '<a href="/docs/judge/#how">it</a>' in measured.html
    assert documents.load("measurements/../judge") is None
    assert documents.load("measurements") is None


def test_what_is_no_document_of_ours_breaks_no_page_of_them(
    client: Client, tmp_path: Path, settings: Any, db: None
) -> None:
    settings.BASE_DIR = tmp_path
    folder = tmp_path / "docs" / "measurements"
    (folder / "folder.md").mkdir(parents=True)
    (folder / ".#lock.md").symlink_to("nowhere")
    (tmp_path / "docs" / "judge.md").write_text("# Judge")
    (folder / "latin.md").write_bytes(b"# Caf\xe9")
    assert [slug for slug, _ in documents.titles()] == ["judge", "measurements/latin"]
    assert "Caf\ufffd" in client.get("/docs/measurements/latin/").content.decode()
    assert client.get("/docs/measurements/folder/").status_code == 404


def test_links_inside_our_documents_lead_somewhere(client: Client, db: None) -> None:
    slugs = {problem.slug for problem in all_problems()}
    for slug, _ in documents.titles():
        document = documents.load(slug)
        assert document is not None
        for link in re.findall(r'href="([^"#?]+)', document.html):
            if problem := re.fullmatch(r"/problems/(\w+)/", link):
                assert problem[1] in slugs
            elif "://" not in link:
                assert client.get(urljoin(f"/docs/{slug}/", link)).status_code in (200, 302), (slug, link)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.50 s"), (0.0123, "12.3 ms"), (4.66e-6, "4.66 µs"), (3e-8, "30.0 ns"), (123.4, "123 s")],
)
def test_durations_have_three_digits(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("low", "value", "high"), [(0.9, 1.0, 1.1), (0.01, 0.02, 0.05), (1, 50, 400), (1.499, 1.5, 1.501)]
)
def test_the_interval_is_drawn_in_order_and_inside(low: float, value: float, high: float) -> None:
    drawn = figures.interval({"speedup": value, "speedup_low": low, "speedup_high": high})
    assert drawn is not None
    assert figures.LEFT <= drawn.low <= drawn.value <= drawn.high <= figures.RIGHT
    assert figures.LEFT <= drawn.one <= figures.RIGHT
    assert drawn.ticks


@pytest.mark.parametrize("odd", [None, 0, -1, "fast", float("nan"), float("inf"), True])
def test_odd_figures_are_not_drawn(odd: Any) -> None:
    assert figures.interval({"speedup": odd}) is None
    assert figures.bars({"solution_ms": odd, "reference_ms": 1.0}, None)[0].label == "reference"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("mode", "timed", "measures"), [("quick", True, True), ("check", True, False), ("profile", False, False)]
)
def test_only_a_mode_that_times_announces_timing(mode: str, timed: bool, measures: bool) -> None:
    target = factories.TargetFactory(spec={"timed": timed})
    row = factories.submission(mode=mode, target=target)
    names = {stage["name"] for stage in submission_page._stages(row, None)}
    assert {"correctness", "reporting"} <= names
    assert names & {"warm-up", "timing"} == ({"warm-up", "timing"} if measures else set())


def test_every_state_and_verdict_has_words() -> None:
    for key in (*State, *Verdict):
        if key not in (State.DONE,):
            assert key in HEADLINES
            assert key in TONES


@pytest.mark.django_db
def test_a_second_measurement_hides_nothing_while_it_runs(client: Client) -> None:
    row = factories.judged()
    now = timezone.now()
    Attempt.objects.create(
        submission=row,
        host=row.attempts.get().host,
        number=2,
        leased_at=now,
        heartbeat_at=now,
        lease_expires_at=now,
        stage="timing",
    )
    assert "1.51×" in page_of(client, row)
    assert client.get(f"/api/v1/submissions/{row.pk}/result/").json()["timing"]["speedup"] == 1.51


@pytest.mark.django_db
def test_the_api_says_that_the_slash_or_the_key_is_missing() -> None:
    client = Client(enforce_csrf_checks=True)
    missing = client.post("/api/v1/submissions")
    assert (missing.status_code, missing.json()["code"]) == (404, "path.unknown")
    assert "end with a slash" in missing.json()["detail"]
    nameless = client.post("/api/v1/submissions/")
    assert nameless.status_code == 401
    assert "Authorization: Token" in nameless.json()["detail"]


def test_a_tie_by_resolution_is_not_headlined_as_faster() -> None:
    timing = {"speedup": 2.09, "speedup_low": 1.35, "speedup_high": 2.82}
    row = Submission(verdict="correct", state="done")
    assert "faster" in submission_page._headline(row, {"timing": timing, "flags": []})
    assert "faster" not in submission_page._headline(row, {"timing": timing, "flags": ["below_resolution"]})
    assert "counts as no faster" in submission_page._headline(row, {"timing": timing, "flags": ["noisy"]})

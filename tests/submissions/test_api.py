"""The door over HTTP."""

import io
import itertools
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from portal.core import throttles
from portal.submissions.models import Submission
from portal.submissions.validation import MAX_BYTES
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
URL = "/api/v1/submissions/"
Client = Callable[..., APIClient]


@pytest.fixture(autouse=True)
def _catalogue() -> None:
    factories.ProblemFactory()
    factories.TargetFactory()


def upload(text: str | bytes = factories.GOOD, name: str = "solution.py") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text if isinstance(text, bytes) else text.encode())


def form(**fields: Any) -> dict[str, Any]:
    return {"file": upload(), "problem": "allreduce", "target": "cpu4", **fields}


def demand_problem(response: Any, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["code"] == code
    assert body["detail"]
    assert body["request_id"] == response["X-Request-Id"]
    if field is not None:
        assert [e["field"] for e in body["errors"]] == [field]
        assert all(e["message"] for e in body["errors"])
    return body


def test_a_file_is_accepted_with_202_and_links(api: Client) -> None:
    response = api(factories.UserFactory()).post(URL, form())
    assert response.status_code == 202
    body = response.json()
    assert response["Location"] == body["links"]["self"]
    assert response["RateLimit"].startswith('"submit";r=')
    assert (body["state"], body["queue_position"], body["poll_after"]) == ("queued", 1, 1.0)
    assert set(body["links"]) == {"self", "page", "result", "logs", "source", "cancel"}


def test_json_with_the_source_as_text_is_accepted(api: Client) -> None:
    body = {"source": factories.GOOD, "problem": "1", "target": "cpu4", "mode": "quick", "batch": True}
    response = api(factories.UserFactory()).post(URL, body, format="json")
    assert response.status_code == 202
    assert (response.json()["mode"], response.json()["lane"]) == ("quick", "batch")


def test_a_zip_is_accepted_and_comes_back_as_it_was_sent(api: Client) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zf:
        zf.writestr("solution.py", factories.GOOD)
        zf.writestr("k.cu", "int x;")
    client = api(factories.UserFactory())
    made = client.post(URL, form(file=upload(out.getvalue(), "s.zip"))).json()
    got = client.get(f"{URL}{made['id']}/source/")
    assert got.content == out.getvalue()
    assert got["Content-Disposition"].endswith('.zip"')


BAD: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "not UTF-8": ({"file": b"\xff\xfedef solution(x): pass"}, 422, "source.not_utf8", "file"),
    "NUL": ({"file": b"def solution(x): pass\0"}, 422, "source.nul", "file"),
    "over 1 MiB": ({"file": b"#" * (MAX_BYTES + 1)}, 413, "source.too_large", "file"),
    "empty": ({"file": b""}, 422, "source.empty", "file"),
    "no solution": ({"file": b"def solve(x): pass"}, 422, "source.no_solution", "file"),
    "syntax": ({"file": b"def solution(x)\n  pass"}, 422, "source.syntax_error", "file"),
    "arity": ({"file": b"def solution(): pass"}, 422, "source.arity", "file"),
    "broken zip": ({"file": b"PK\x03\x04..."}, 422, "zip.broken", "file"),
    "no file": ({"file": None}, 422, "file.one_source", "file"),
    "file and source": ({"source": factories.GOOD}, 422, "file.one_source", "file"),
    "no problem": ({"problem": None}, 422, "problem.required", "problem"),
    "unknown problem": ({"problem": "quantum"}, 422, "problem.unknown", "problem"),
    "unknown target": ({"target": "tpu"}, 422, "target.unknown", "target"),
    "unknown mode": ({"mode": "turbo"}, 422, "mode.invalid_choice", "mode"),
    "unknown size": ({"mode": "quick", "size": "huge"}, 422, "size.unknown", "size"),
    "run is no number": ({"run": "mine"}, 422, "run.invalid", "run"),
    "unknown run": ({"run": "77"}, 422, "run.unknown", "run"),
    "huge run": ({"run": "9" * 30}, 422, "run.max_value", "run"),
    "negative sample": ({"sample": "-1"}, 422, "sample.min_value", "sample"),
    "another field": ({"samlpe": "1"}, 422, "request.unknown_field", "samlpe"),
    "a zip that is none": ({"file": upload(b"solution", "a.zip")}, 422, "zip.broken", "file"),
    "a file sent as text": ({"file": "solution.py"}, 422, "file.invalid", "file"),
    "no true and no false": ({"batch": "perhaps"}, 422, "batch.invalid", "batch"),
    "parent is no id": ({"parent": "x"}, 422, "parent.invalid", "parent"),
    "NUL in a field": ({"problem": "a\0b"}, 422, "problem.null_characters_not_allowed", "problem"),
}


@pytest.mark.parametrize(("change", "status", "code", "field"), BAD.values(), ids=BAD)
def test_bad_input_is_named_and_leaves_nothing(
    api: Client, change: dict[str, Any], status: int, code: str, field: str
) -> None:
    fields = {k: v for k, v in form(**change).items() if v is not None}
    if isinstance(fields.get("file"), bytes):
        fields["file"] = upload(fields["file"])
    response = api(factories.UserFactory()).post(URL, fields)
    demand_problem(response, status, code, field)
    assert not Submission.objects.exists()


def test_no_source_and_two_are_told_apart(api: Client) -> None:
    client = api(factories.UserFactory())
    none = client.post(URL, {"problem": "allreduce", "target": "cpu4"}, format="json").json()
    both = client.post(URL, form(source=factories.GOOD)).json()
    assert "No source was sent." in none["detail"]
    assert "not both" in both["detail"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "parse_error"),
        (b"[]", 400, "parse_error"),
        (b"null", 400, "parse_error"),
        (b'"text"', 400, "parse_error"),
        (b'{"problem": {"a": 1}}', 422, "invalid"),
        (b"\xff", 400, "parse_error"),
        (
            b'{"source": "\\ud800", "problem": "allreduce", "target": "cpu4"}',
            422,
            "source.surrogate_characters_not_allowed",
        ),
        (b"[" * 100_000, 400, "parse_error"),
    ],
)
def test_bodies_that_are_no_request_are_refused(api: Client, body: bytes, status: int, code: str) -> None:
    response = api(factories.UserFactory()).post(URL, body, content_type="application/json")
    demand_problem(response, status, code)


def test_other_media_types_are_415(api: Client) -> None:
    response = api(factories.UserFactory()).post(URL, b"x", content_type="text/plain")
    demand_problem(response, 415, "unsupported_media_type")


def part(name: str, value: bytes, filename: str = "") -> bytes:
    named = f'; filename="{filename}"' if filename else ""
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + value + b"\r\n"


ORDER = part("problem", b"allreduce") + part("target", b"cpu4")
SOURCE = part("file", factories.GOOD.encode(), "solution.py")
TORN = {
    "whole": (SOURCE + ORDER + b"--b--\r\n", 202, ""),
    "cut in the closing boundary": (ORDER + SOURCE + b"--b", 400, "cut short"),
    "cut in the file": (ORDER + SOURCE[:-20], 400, "cut short"),
    "empty": (b"", 422, "Say which problem"),
    "two files": (SOURCE + SOURCE + ORDER + b"--b--\r\n", 400, "`file` is there 2 times"),
    "a file and a text of that name": (SOURCE + ORDER + part("file", b"x") + b"--b--\r\n", 400, "2 times"),
    "two targets": (
        SOURCE + ORDER + part("target", b"h100x4") + b"--b--\r\n",
        400,
        "`target` is there 2 times",
    ),
    "nine files": (b"".join(part(f"f{n}", b"x", "a.py") for n in range(9)) + b"--b--\r\n", 400, "too much"),
    "200 fields": (b"".join(part(f"f{n}", b"x") for n in range(200)) + b"--b--\r\n", 400, "too much"),
    "a field of 5 MB": (part("problem", b"x" * 5_000_000) + b"--b--\r\n", 400, "too much"),
    "no name": (
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n" + ORDER + b"--b--\r\n",
        422,
        "No source was sent",
    ),
    "a file without a name": (
        ORDER + b'--b\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\nx\r\n--b--\r\n',
        422,
        "not as a file",
    ),
}


@pytest.mark.parametrize(("body", "status", "word"), TORN.values(), ids=TORN)
def test_a_form_is_taken_whole_or_not_at_all(api: Client, body: bytes, status: int, word: str) -> None:
    client = api(factories.UserFactory())
    response = client.post(URL, body, content_type="multipart/form-data; boundary=b")
    assert response.status_code == status, response.content
    assert Submission.objects.count() == (status == 202)
    if status != 202:
        assert response["Content-Type"] == "application/problem+json"
        assert word in response.json()["detail"]


def test_a_field_that_is_there_twice_is_named(api: Client) -> None:
    body = SOURCE + SOURCE + ORDER + b"--b--\r\n"
    form_type = "multipart/form-data; boundary=b"
    response = api(factories.UserFactory()).post(URL, body, content_type=form_type)
    demand_problem(response, 400, "file.repeated", "file")
    twice = b'{"problem": "allreduce", "problem": "1"}'
    response = api(factories.UserFactory()).post(URL, twice, content_type="application/json")
    assert "'problem' is there twice" in demand_problem(response, 400, "parse_error")["detail"]


def test_a_refusal_says_what_would_be_taken(api: Client) -> None:
    client = api(factories.UserFactory())
    for change, words in (
        ({"mode": "turbo"}, "check, quick, score, profile"),
        ({"problem": "all_reduce"}, "Did you mean allreduce"),
        ({"problem": ""}, "/api/v1/problems/"),
        ({"target": "tpu"}, "Targets: cpu4"),
        ({"samlpe": "1"}, "sample"),
        ({"file": upload(b"")}, "Send the file with `solution` in it"),
        ({"file": upload(b"x", "a.zip")}, "Pack solution.py"),
        ({"file": "solution.py"}, "-F file=@solution.py"),
    ):
        detail = client.post(URL, form(**change)).json()["detail"]
        assert words in detail
    body = {"entrant_name": "a", "run_name": "b", "harness": "magic", "kind": "robot"}
    answer = client.post("/api/v1/runs/", body, format="json").json()
    assert [error["field"] for error in answer["errors"]] == ["harness", "kind"]
    assert "single-shot, agentic" in answer["detail"]


def test_broken_multipart_bodies_are_refused(api: Client) -> None:
    client = api(factories.UserFactory())
    boundaries = ("", "; boundary=x", '; boundary="', "; boundary=é")
    for body, parameters in itertools.product((b"", b"--x", b"--x\r\nnonsense"), boundaries):
        response = client.post(URL, body, content_type="multipart/form-data" + parameters)
        assert response.status_code in (400, 422), (body, parameters)


@pytest.mark.parametrize(
    "header",
    ["", "Token", "Token x y", "Token nonsense", "Token é".encode("latin-1").decode("latin-1"), "Bearer x"],
)
def test_without_a_good_token_nothing_is_taken(header: str) -> None:
    client = APIClient()
    response = client.post(URL, form(), **({"HTTP_AUTHORIZATION": header} if header else {}))
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Token")
    assert response["Content-Type"] == "application/problem+json"


def test_a_token_without_the_scope_is_403(api: Client) -> None:
    demand_problem(
        api(factories.UserFactory(), scopes=["read"]).post(URL, form()), 403, "token.scope_missing"
    )
    assert api(factories.UserFactory(), scopes=["submit"]).get(URL).status_code == 403


def test_the_same_key_twice_is_200_the_second_time(api: Client) -> None:
    client = api(factories.UserFactory())
    first = client.post(URL, form(), HTTP_IDEMPOTENCY_KEY="abc")
    again = client.post(URL, form(), HTTP_IDEMPOTENCY_KEY="abc")
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    other = client.post(URL, form(mode="quick"), HTTP_IDEMPOTENCY_KEY="abc")
    demand_problem(other, 409, "idempotency.key_reused", "Idempotency-Key")
    bad = client.post(URL, form(), HTTP_IDEMPOTENCY_KEY="k" * 200)
    demand_problem(bad, 422, "idempotency.key_invalid", "Idempotency-Key")


def test_the_quota_is_429_with_retry_after(api: Client, settings: Any) -> None:
    settings.SUBMIT_MAX_QUEUED = 1
    client = api(factories.UserFactory())
    assert client.post(URL, form()).status_code == 202
    response = client.post(URL, form())
    body = demand_problem(response, 429, "quota.queued")
    assert response["Retry-After"] == "15"
    assert body["limit"] == 1


def test_the_throttle_says_what_is_left(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [999_999_980.0]  # a third of a minute has passed
    monkeypatch.setattr("portal.core.throttles.now", lambda: clock[0])
    monkeypatch.setattr("portal.core.throttles.rate_of", lambda scope: "2/min")
    client, other = api(factories.UserFactory()), api(factories.UserFactory())
    left = [client.get("/api/v1/targets/")["RateLimit"] for _ in range(2)]
    assert left == ['"user";r=1;t=40', '"user";r=0;t=40']
    for _ in range(2):
        response = client.get("/api/v1/targets/")
        demand_problem(response, 429, "throttled")
        assert 40 <= int(response["Retry-After"]) <= 41
        assert response["RateLimit-Policy"] == '"user";q=2;w=60'
    assert other.get("/api/v1/targets/").status_code == 200
    clock[0] += 40
    assert client.get("/api/v1/targets/").status_code == 200


def test_a_counted_request_costs_one_operation_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    store = throttles.cache

    class Watched:
        def __getattr__(self, name: str) -> Any:
            used.append(name)
            return getattr(store, name)

    throttles.count("anon", "a")
    monkeypatch.setattr(throttles, "cache", Watched())
    assert throttles.count("anon", "a").used == 2
    assert used == ["incr"]


@pytest.mark.parametrize(
    ("rate", "parsed"), [("120/min", (120, 60)), ("1/s", (1, 1)), ("5/hour", (5, 3600)), ("9/d", (9, 86400))]
)
def test_rates(rate: str, parsed: tuple[int, int]) -> None:
    assert throttles.parsed(rate) == parsed
    with pytest.raises(ValueError, match="rate"):
        throttles.parsed(rate.replace("/", "/x"))


def test_state_has_an_etag_and_the_result_once_done(api: Client) -> None:
    author = factories.UserFactory()
    row = factories.judged(author)
    client = api(author)
    response = client.get(f"{URL}{row.pk}/")
    body = response.json()
    assert (body["state"], body["verdict"], body["poll_after"]) == ("done", "correct", None)
    assert body["result"]["timing"]["speedup"] == 1.51
    assert body["result"]["seeds"] == {"secret": "424242"}  # published once it is final
    again = client.get(f"{URL}{row.pk}/", HTTP_IF_NONE_MATCH=response["ETag"])
    assert (again.status_code, again.content) == (304, b"")


def test_waiting_ends_at_once_for_what_is_final_and_in_time_for_the_rest(api: Client) -> None:
    client = api(factories.UserFactory())
    assert client.get(f"{URL}{factories.judged().pk}/?wait=25").json()["state"] == "done"
    assert client.get(f"{URL}{factories.submission().pk}/?wait=0.3").json()["state"] == "queued"
    for odd in ("nan", "-1", "abc", "inf", "1e999"):
        demand_problem(client.get(f"{URL}{factories.judged().pk}/?wait={odd}"), 400, "wait.invalid", "wait")


def test_there_is_no_result_before_it_is_done(api: Client) -> None:
    response = api(factories.UserFactory()).get(f"{URL}{factories.submission().pk}/result/")
    demand_problem(response, 409, "result.not_yet")


def test_what_quotes_the_source_is_private_until_opened(api: Client) -> None:
    author, stranger = factories.UserFactory(), factories.UserFactory()
    row = factories.judged(author, "timeout", result={"stacks": [{"rank": 0, "text": "secret line"}]})
    mine, theirs = api(author), api(stranger)
    assert "secret" in mine.get(f"{URL}{row.pk}/logs/").content.decode()
    for part in ("", "result/", "logs/"):
        assert "secret line" not in theirs.get(f"{URL}{row.pk}/{part}").content.decode()
    assert theirs.get(f"{URL}{row.pk}/source/").status_code == 404
    opened = mine.post(f"{URL}{row.pk}/visibility/", {"source_public": True}, format="json")
    assert opened.json()["source_public"] is True
    assert theirs.get(f"{URL}{row.pk}/source/").status_code == 200
    assert "secret" in theirs.get(f"{URL}{row.pk}/logs/").content.decode()


def test_a_private_submission_is_404_for_strangers(api: Client) -> None:
    author = factories.UserFactory()
    row = factories.judged(author, results_public=False)
    for part in ("", "result/", "logs/", "source/"):
        for client in (api(factories.UserFactory()), APIClient()):
            demand_problem(client.get(f"{URL}{row.pk}/{part}"), 404, "submission.not_found")
        assert api(author).get(f"{URL}{row.pk}/{part}").status_code == 200
    stranger = api(factories.UserFactory())
    assert stranger.get(URL).json()["results"] == []
    demand_problem(stranger.post(f"{URL}{row.pk}/cancel/"), 404, "submission.not_found")


def test_cancel_over_the_api(api: Client) -> None:
    author = factories.UserFactory()
    row = factories.submission(author)
    demand_problem(api(factories.UserFactory()).post(f"{URL}{row.pk}/cancel/"), 403, "submission.not_yours")
    response = api(author).post(f"{URL}{row.pk}/cancel/", {"reason": "typo"}, format="json")
    assert (response.status_code, response.json()["state"]) == (200, "cancelled")
    assert (response.json()["verdict"], response.json()["poll_after"]) == ("", None), "no verdict will come"
    body = demand_problem(api(author).post(f"{URL}{row.pk}/cancel/"), 409, "submission.state_conflict")
    assert (body["state"], body["detail"][:23]) == ("cancelled", "It is cancelled already")
    done = factories.judged(author, "incorrect")
    body = demand_problem(api(author).post(f"{URL}{done.pk}/cancel/"), 409, "submission.state_conflict")
    assert (body["state"], body["verdict"]) == ("done", "incorrect")
    assert "It is done already with the verdict incorrect" in body["detail"]


def test_the_list_filters_pages_and_asks_few_queries(api: Client, django_assert_max_num_queries: Any) -> None:
    author = factories.UserFactory()
    for verdict in ("correct", "incorrect", "correct"):
        factories.judged(author, verdict)
    factories.submission()
    client = api(author)
    with django_assert_max_num_queries(4):
        assert len(client.get(URL).json()["results"]) == 4
    assert len(client.get(f"{URL}?verdict=correct").json()["results"]) == 2
    assert len(client.get(f"{URL}?mine=true").json()["results"]) == 3
    first = client.get(f"{URL}?page_size=3").json()
    assert len(first["results"]) == 3
    assert len(client.get(first["next"]).json()["results"]) == 1
    for query, count in (("problem=1", 4), ("problem=allreduce", 4), ("mine=True", 3), ("mine=0", 4)):
        assert len(client.get(f"{URL}?{query}").json()["results"]) == count
    demand_problem(client.get(f"{URL}?state=lost"), 400, "state.invalid_choice", "state")


def test_runs_are_made_listed_and_used(api: Client) -> None:
    author = factories.UserFactory()
    client = api(author)
    body = {"entrant_name": "Model X", "run_name": "one", "harness": "single-shot"}
    made = client.post("/api/v1/runs/", body, format="json")
    assert (made.status_code, made.json()["verified"]) == (201, False)
    demand_problem(client.post("/api/v1/runs/", body, format="json"), 422, "run.name_taken", "run_name")
    sent = client.post(URL, form(run=made.json()["id"])).json()
    assert sent["run"]["entrant"] == "Model X"
    assert [run["name"] for run in client.get("/api/v1/runs/").json()["results"]] == ["one"]


def test_a_run_says_how_far_it_is_on_each_target(
    api: Client, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    author = factories.UserFactory()
    run = factories.model_run(author)
    first, second = factories.ProblemFactory(), factories.ProblemFactory(slug="allgather")
    beside = factories.ProblemFactory(slug="kept_apart", spec={**factories.SPEC, "track": "sam3"})
    factories.ProblemFactory(slug="never")
    factories.judged(author, run=run, problem=first)
    newest = factories.submission(author, run=run, problem=first)
    factories.judged(author, "incorrect", run=run, problem=second)
    factories.judged(author, run=run, problem=beside)
    factories.judged(author, run=run, problem=second, mode="quick")
    other = factories.TargetFactory(slug="other4", title="other")
    factories.submission(author, run=run, problem=first, target=other)
    client = api(author)
    with django_assert_max_num_queries(25):
        told = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (told["id"], told["name"]) == (run.pk, "run 1")
    here, there = told["progress"]
    problems = {row.pop("problem"): row for row in here.pop("problems")}
    assert here == {
        "target": "cpu4", "track": 3, "sent": 2, "judged": 2, "solved": 1, "missing": ["never"], "waiting": 1,
        "uncounted": 1,
    }  # fmt: skip
    assert list(problems) == ["allreduce", "allgather", "kept_apart"]
    assert problems["allreduce"] == {"sent": 2, "judged": 1, "correct": 1, "newest": str(newest.pk)}
    assert (there["target"], there["sent"], there["judged"]) == ("other4", 1, 0)
    assert api(factories.UserFactory(is_staff=True)).get(f"/api/v1/runs/{run.pk}/").status_code == 200
    strange = api(factories.UserFactory()).get(f"/api/v1/runs/{run.pk}/")
    demand_problem(strange, 404, "run.not_found")


def test_a_list_leaves_out_what_it_does_not_know(api: Client) -> None:
    author = factories.UserFactory()
    made = api(author).post(URL, form()).json()
    assert {"queue_position", "notice"} <= made.keys()
    row = api(author, name="b").get(URL).json()["results"][0]
    assert made.keys() - row.keys() == {"queue_position", "notice"}
    assert row["poll_after"] == 1.0


def test_quota_over_the_api(api: Client) -> None:
    client = api(factories.UserFactory())
    before = client.get("/api/v1/quota/").json()["remaining"]
    client.post(URL, form())
    assert client.get("/api/v1/quota/").json()["remaining"] == before - 1


def test_an_unexpected_fault_is_a_500_problem_without_details(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("portal.submissions.api.submit", broken)
    body = demand_problem(api(factories.UserFactory()).post(URL, form()), 500, "internal")
    assert "secret" not in str(body)


def test_a_body_that_says_it_is_huge_is_refused_unread(api: Client, settings: Any) -> None:
    settings.REQUEST_MAX_BYTES = 1000
    response = api(factories.UserFactory()).post(URL, form(file=upload("#" * 2000)))
    demand_problem(response, 413, "request.too_large")
    page = api(factories.UserFactory()).post("/submit/", {"file": upload("#" * 2000)})
    assert (page.status_code, page["Content-Type"]) == (413, "text/html; charset=utf-8")
    assert_bare(page.content.decode(), 413, "At most 1,000 bytes are taken.")


def test_a_body_in_chunks_is_told_so_and_not_taken_for_an_empty_one(api: Client) -> None:
    response = api(factories.UserFactory()).post(URL, form(), HTTP_TRANSFER_ENCODING="chunked")
    demand_problem(response, 411, "request.length_required")
    page = api(factories.UserFactory()).post("/submit/", {}, HTTP_TRANSFER_ENCODING="chunked")
    assert page.status_code == 411
    assert_bare(page.content.decode(), 411, "Send it whole, with Content-Length.")


def assert_bare(text: str, code: int, advice: str) -> None:
    """A page of its own words: no menu, nothing of the reader, the request's id to ask with."""
    assert "<title>Not taken</title>" in text
    assert "<h1>Not taken</h1>" in text
    assert f'<p class="error-code" aria-hidden="true">{code}</p>' in text
    assert advice in text
    assert re.search(r"Request <code>[0-9a-f-]{8,64}</code>", text)
    assert "<nav" not in text


@pytest.mark.parametrize("field", ["entrant_name", "run_name", "vendor", "prompt_variant", "prompt_hash"])
@pytest.mark.parametrize("letter", ["\u202e", "\u200b", "\u2066", "\ufeff", "\u00ad", "\ue000"])
def test_names_hold_nothing_that_nobody_can_see(api: Client, field: str, letter: str) -> None:
    client = api(factories.UserFactory())
    body = {"entrant_name": "model", "run_name": "one", "harness": "single-shot", field: f"mo{letter}del"}
    demand_problem(client.post("/api/v1/runs/", body, format="json"), 422, "run.name_unseen", field)


@pytest.mark.parametrize("path", ["cancel", "visibility", "withdraw", "rescore", "appeal", "appeal/answer"])
def test_what_is_done_to_a_submission_takes_no_field_that_it_would_ignore(api: Client, path: str) -> None:
    author = factories.UserFactory(is_staff=True)
    known = {"text": "x", "upheld": True, "answer": "x"} if path.startswith("appeal") else {}
    sent = {name: value for name, value in known.items() if (name == "text") != path.endswith("answer")}
    row = factories.submission(author)
    answer = api(author).post(
        f"{URL}{row.pk}/{path}/", sent | {"publik": True}, content_type="application/json"
    )
    problem = demand_problem(answer, 422, "request.unknown_field")
    assert problem["errors"][0]["field"] == "publik"


def test_a_new_run_takes_no_field_that_it_would_ignore(api: Client) -> None:
    sent = {"entrant_name": "m", "run_name": "r", "harness": "agentic", "modle": "x"}
    answer = api(factories.UserFactory()).post("/api/v1/runs/", sent, content_type="application/json")
    demand_problem(answer, 422, "request.unknown_field")


def test_a_code_holds_no_word_of_the_caller(api: Client) -> None:
    client = api(factories.UserFactory())
    demand_problem(client.post(URL, form(colour="red")), 422, "request.unknown_field", "colour")
    demand_problem(client.get(f"{URL}?sate=done"), 400, "query.unknown_parameter", "sate")


def test_a_name_that_cannot_be_seen_is_told_at_the_field_that_was_sent(api: Client) -> None:
    body = demand_problem(
        api(factories.UserFactory()).post(URL, form(model="a\u200bb")), 422, "run.name_unseen"
    )
    assert body["errors"][0]["field"] == "model"


def test_all_that_is_wrong_with_the_fields_is_told_at_once(api: Client) -> None:
    answer = api(factories.UserFactory()).post(URL, form(mode="fast", target="h100", problem="99", foo="1"))
    body = demand_problem(answer, 422, "invalid")
    assert {e["field"]: e["code"] for e in body["errors"]} == {
        "mode": "mode.invalid_choice",
        "foo": "request.unknown_field",
        "target": "target.unknown",
        "problem": "problem.unknown",
    }
    assert body["detail"].startswith("mode: ")
    alone = api(factories.UserFactory()).post(URL, form(target="h100"))
    demand_problem(alone, 422, "target.unknown", "target")
    zipped = {"file": upload(), "target": "h100", "mode": "fast", "bar": "1"}
    run = factories.model_run(author := factories.UserFactory())
    refused = api(author).post(f"/api/v1/runs/{run.pk}/upload/", zipped).json()
    assert {e["field"] for e in refused["errors"]} == {"mode", "target", "bar"}


@pytest.mark.parametrize("word", ["\ud800", "a\x00b"], ids=["half a pair", "NUL"])
@pytest.mark.parametrize("field", ["problem", "target"])
def test_text_that_no_database_takes_is_refused_beside_other_errors(
    api: Client, field: str, word: str
) -> None:
    client = api(factories.UserFactory())
    sent = {"source": factories.GOOD, "problem": "1", "target": "cpu4", field: word}
    told = [
        client.post(URL, json.dumps(sent | more), content_type="application/json")
        for more in ({}, {"foo": 1})
    ]
    assert [answer.status_code for answer in told] == [422, 422]
    assert [sorted({e["field"] for e in answer.json()["errors"]}) for answer in told] == [
        [field],
        sorted({field, "foo"}),
    ]
    if word != "\ud800":  # half a pair cannot be sent in a form
        assert client.post(URL, form(**{field: word})).status_code == 422


def test_who_sends_no_key_is_told_where_to_make_one() -> None:
    assert "Make one at http://testserver/accounts/tokens/." in APIClient().post(URL, form()).json()["detail"]


def test_only_what_is_for_a_board_has_a_sample(api: Client) -> None:
    client = api(factories.UserFactory())
    assert client.post(URL, form(mode="check")).json()["sample"] is None
    assert client.post(URL, form(mode="score")).json()["sample"] == 0

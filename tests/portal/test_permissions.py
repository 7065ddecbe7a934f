"""Who gets what: every route of the site, every role, every verb, one table. A new route must be added."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from portal.accounts.models import ApiToken
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]

ROLES = ("anonymous", "stranger", "author", "staff")
LOGIN = 302

# route -> verb -> status for anonymous, stranger, author, staff. The submission's source is private, its results
# are public; `hidden` is one whose results are private too. "-" in a route marks whose object it is.
OPEN = (200, 200, 200, 200)
USER = (LOGIN, 200, 200, 200)
NO_POST = (405, 405, 405, 405)
API_NO_POST = (401, 405, 405, 405)

TABLE: dict[str, dict[str, tuple[int, int, int, int]]] = {
    "/": {"GET": OPEN},
    "/problems/": {"GET": OPEN},
    "/problems/map/": {"GET": OPEN},
    "/problems/allreduce/": {"GET": OPEN},
    "/problems/allreduce/starter.py": {"GET": OPEN},
    "/docs/": {"GET": OPEN},
    "/docs/measurements/aa_cpu4.json": {"GET": OPEN},
    "/docs/participants/": {"GET": OPEN},
    "/status/": {"GET": OPEN},
    "/embed/models/": {"GET": OPEN, "POST": NO_POST},
    "/embed/models/{entrant}/fast-p/": {"GET": OPEN, "POST": NO_POST},
    "/embed/cpu4/allreduce/record/": {"GET": OPEN, "POST": NO_POST},
    "/healthz": {"GET": OPEN},
    "/readyz": {"GET": OPEN},
    "/account/": {"GET": USER, "POST": (LOGIN, 422, 422, 422)},
    "/account/data.zip": {"GET": USER, "POST": (LOGIN, 405, 405, 405)},
    "/accounts/password/reset/": {"GET": OPEN, "POST": OPEN},
    "/accounts/password/reset/sent/": {"GET": OPEN, "POST": NO_POST},
    "/accounts/password/reset/x/y/": {"GET": OPEN},
    "/submit/": {"GET": USER, "POST": (LOGIN, 422, 422, 422)},
    "/runs/": {"GET": USER, "POST": (LOGIN, 405, 405, 405)},
    "/runs/new/": {"GET": USER, "POST": (LOGIN, 422, 422, 422)},
    "/runs/{run}/": {"GET": (LOGIN, 404, 200, 200), "POST": (LOGIN, 404, 422, 422)},
    "/submissions/": {"GET": USER, "POST": (LOGIN, 405, 405, 405)},
    "/submissions/{open}/": {"GET": OPEN, "POST": NO_POST},
    "/submissions/{open}/live/": {"GET": OPEN, "POST": NO_POST},
    "/submissions/{open}/source/": {"GET": (404, 404, 200, 200), "POST": NO_POST},
    "/submissions/{open}/trace/": {"GET": (404, 404, 200, 200), "POST": NO_POST},
    "/submissions/{hidden}/trace/": {"GET": (404, 404, 404, 404)},
    "/submissions/{open}/cancel/": {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 302, 302, 302)},
    "/submissions/{open}/visibility/": {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 302, 302, 302)},
    "/submissions/{open}/standing/": {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 302, 302, 302)},
    "/submissions/{hidden}/standing/": {"POST": (LOGIN, 404, 302, 302)},
    "/review/": {"GET": (LOGIN, 403, 403, 200), "POST": (LOGIN, 405, 405, 405)},
    "/review/rescore/": {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 403, 403, 302)},
    "/review/submissions/{open}/": {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 403, 403, 302)},
    "/submissions/{hidden}/": {"GET": (404, 404, 200, 200)},
    "/submissions/{hidden}/live/": {"GET": (404, 404, 200, 200)},
    "/submissions/{hidden}/source/": {"GET": (404, 404, 200, 200)},
    "/submissions/{hidden}/cancel/": {"POST": (LOGIN, 404, 302, 302)},
    "/submissions/{hidden}/visibility/": {"POST": (LOGIN, 404, 302, 302)},
    "/accounts/signup/": {"GET": (200, 302, 302, 302), "POST": (422, 302, 302, 302)},
    "/accounts/login/": {"GET": (200, 302, 302, 302), "POST": (200, 302, 302, 302)},
    "/accounts/password/": {"GET": USER, "POST": USER},
    "/accounts/tokens/": {"GET": USER, "POST": (LOGIN, 422, 422, 422)},
    "/accounts/tokens/{token}/revoke/": {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 302, 302, 302)},
    "/accounts/logout/": {"GET": NO_POST, "POST": (302, 302, 302, 302)},
    "/admin/": {"GET": (302, 302, 302, 200)},
    "/api/schema/": {"GET": OPEN},
    "/api/schema/browse/": {"GET": OPEN},
    "/api/v1/nothing/": {"GET": (404, 404, 404, 404), "POST": (404, 404, 404, 404)},
    "/api/v1/problems/": {"GET": OPEN, "POST": API_NO_POST},
    "/api/v1/problems/prompts.zip?target=cpu4": {"GET": OPEN, "POST": API_NO_POST},
    "/api/v1/problems/allreduce/": {"GET": OPEN, "POST": API_NO_POST},
    "/api/v1/problems/allreduce/prompt/?target=cpu4": {"GET": OPEN, "POST": API_NO_POST},
    "/api/v1/targets/": {"GET": OPEN, "POST": API_NO_POST},
    "/api/v1/targets/cpu4/": {"GET": OPEN, "POST": API_NO_POST},
    "/api/v1/runs/": {"GET": (401, 200, 200, 200), "POST": (401, 422, 422, 422)},
    "/api/v1/runs/{run}/": {"GET": (401, 404, 200, 200), "POST": (401, 405, 405, 405)},
    "/api/v1/runs/{run}/upload/": {"GET": (401, 405, 405, 405), "POST": (401, 404, 422, 422)},
    "/api/v1/quota/": {"GET": (401, 200, 200, 200), "POST": API_NO_POST},
    "/api/v1/submissions/": {"GET": OPEN, "POST": (401, 422, 422, 422), "DELETE": API_NO_POST},
    "/api/v1/submissions/{open}/": {
        "GET": OPEN,
        "POST": API_NO_POST,
        "PUT": API_NO_POST,
        "DELETE": API_NO_POST,
    },
    "/api/v1/submissions/{open}/result/": {"GET": OPEN, "POST": API_NO_POST},
    "/api/v1/submissions/{open}/logs/": {"GET": (404, 404, 200, 200), "POST": API_NO_POST},
    "/api/v1/submissions/{open}/trace/": {"GET": (404, 404, 200, 200), "POST": API_NO_POST},
    "/api/v1/submissions/{hidden}/trace/": {"GET": (404, 404, 404, 404)},
    "/api/v1/submissions/{open}/source/": {"GET": (404, 404, 200, 200), "POST": API_NO_POST},
    "/api/v1/submissions/{open}/cancel/": {"GET": (401, 405, 405, 405), "POST": (401, 403, 409, 409)},
    "/api/v1/submissions/{open}/visibility/": {"GET": (401, 405, 405, 405), "POST": (401, 403, 200, 200)},
    "/api/v1/submissions/{open}/withdraw/": {"GET": (401, 405, 405, 405), "POST": (401, 403, 200, 403)},
    "/api/v1/submissions/{open}/rescore/": {"GET": (401, 405, 405, 405), "POST": (401, 403, 403, 202)},
    "/api/v1/submissions/{open}/appeal/": {"GET": (401, 404, 200, 200), "POST": (401, 422, 422, 422)},
    "/api/v1/submissions/{open}/appeal/answer/": {
        "GET": (401, 405, 405, 405),
        "POST": (401, 403, 403, 422),
    },
    "/api/v1/submissions/{hidden}/withdraw/": {"POST": (401, 404, 200, 403)},
    "/api/v1/submissions/{hidden}/rescore/": {"POST": (401, 404, 403, 202)},
    "/api/v1/submissions/{hidden}/appeal/": {"GET": (401, 404, 200, 200)},
    "/api/v1/submissions/{hidden}/appeal/answer/": {"POST": (401, 404, 403, 422)},
    "/api/v1/submissions/{hidden}/": {"GET": (404, 404, 200, 200)},
    "/api/v1/submissions/{hidden}/result/": {"GET": (404, 404, 200, 200)},
    "/api/v1/submissions/{hidden}/logs/": {"GET": (404, 404, 200, 200)},
    "/api/v1/submissions/{hidden}/source/": {"GET": (404, 404, 200, 200)},
    "/api/v1/submissions/{hidden}/cancel/": {"POST": (401, 404, 409, 409)},
    "/api/v1/submissions/{hidden}/visibility/": {"POST": (401, 404, 200, 200)},
}


@pytest.fixture
def world() -> dict[str, Any]:
    factories.ProblemFactory()
    people = {
        "stranger": factories.UserFactory(),
        "author": factories.UserFactory(),
        "staff": factories.UserFactory(is_staff=True, is_superuser=True),
    }
    author = people["author"]
    key = factories.token(author)
    return {
        "people": people,
        "open": factories.profiled(author).pk,
        "hidden": factories.judged(author, results_public=False).pk,
        "run": factories.model_run(author).pk,
        "token": ApiToken.objects.get(prefix=key[:12]).pk,
        "entrant": author.entrants.get(kind="person").slug,
    }


@pytest.mark.parametrize("path", TABLE)
def test_the_table(world: dict[str, Any], path: str) -> None:
    url = path.format(**{k: v for k, v in world.items() if k != "people"})
    kind = "application/json" if "/api/" in url else "application/x-www-form-urlencoded"
    wrong = []
    for verb, expected in TABLE[path].items():
        for role, status in zip(ROLES, expected, strict=True):
            client = Client()
            if role != "anonymous":
                client.force_login(world["people"][role])
            response = client.generic(verb, url, content_type=kind)
            if response.status_code != status:
                wrong.append((verb, role, status, response.status_code))
            if status == LOGIN and role == "anonymous" and not path.startswith(("/accounts/log", "/admin")):
                assert response["Location"].startswith("/accounts/login/?next=")
    assert wrong == []


PROBES = ("/healthz", "/readyz")
READ = [path for path, verbs in TABLE.items() if verbs.get("GET", ())[-1:] == (200,)]


@pytest.mark.parametrize("path", [p for p in READ if not p.startswith(("/admin/", "/api/schema/", *PROBES))])
def test_a_parameter_that_nobody_reads_is_refused_everywhere(world: dict[str, Any], path: str) -> None:
    url = path.format(**{k: v for k, v in world.items() if k != "people"})
    client = Client()
    client.force_login(world["people"]["staff"])
    answer = client.get(f"{url}{'&' if '?' in url else '?'}sate=done")
    assert answer.status_code == 400
    assert "`sate`" in answer.content.decode()


def test_nobody_revokes_anothers_token(world: dict[str, Any]) -> None:
    client = Client()
    client.force_login(world["people"]["stranger"])
    client.post(f"/accounts/tokens/{world['token']}/revoke/")
    assert ApiToken.objects.get(pk=world["token"]).usable


def test_a_stranger_changes_nothing_by_the_pages_forms(world: dict[str, Any]) -> None:
    client = Client()
    client.force_login(world["people"]["stranger"])
    client.post(f"/submissions/{world['open']}/visibility/", {"source_public": "yes"})
    row = factories.Submission.objects.get(pk=world["open"])
    assert not row.source_public


def test_forms_demand_the_csrf_token(world: dict[str, Any]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world["people"]["author"])
    assert client.post(f"/submissions/{world['open']}/cancel/").status_code == 403
    assert client.post("/api/v1/submissions/", {}, content_type="application/json").status_code == 403


def routes(patterns: list[Any], prefix: str = "") -> Iterator[str]:
    """Every path of the URL configuration, with converters in it."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            yield prefix + str(pattern.pattern)


def test_every_route_of_these_rooms_is_in_the_table() -> None:
    fill = {
        "<uuid:submission_id>": "{open}",
        "<int:token_id>": "{token}",
        "<int:run_id>": "{run}",
        "<str:uidb64>": "x",
        "<str:token>": "y",
        "<str:slug>": "SLUG",
        "<slug:slug>": "SLUG",
        "<path:slug>": "SLUG",
        "measurements/<str:name>": "measurements/aa_cpu4.json",
        "<slug:problem>": "SLUG",
        "<slug:target>": "cpu4",
        "<slug:chart>": "CHART",
    }
    names = {
        "allreduce": "SLUG",
        "participants": "SLUG",
        "{entrant}": "SLUG",
        "fast-p": "CHART",
        "record": "CHART",
    }
    known = {re.sub("|".join(names), lambda m: names[m[0]], path.partition("?")[0]) for path in TABLE}
    known |= {"/api/v1/targets/SLUG/"}
    for route in routes(get_resolver().url_patterns):
        if route.startswith(("admin/", "boards/")) or route.startswith("api/^") or "leaderboards" in route:
            continue  # Django's own; the boards have tests of their own; the API's answer to unknown paths
        path = "/" + route
        for converter, value in fill.items():
            path = path.replace(converter, value)
        assert path in known, f"{path} is not in the permission table"

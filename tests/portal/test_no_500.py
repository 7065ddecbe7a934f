"""Whatever is sent, the answer is never a 500: the API by its own schema, the pages by odd parameters."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from portal.wsgi import application
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]


@pytest.fixture
def _kept_connection() -> Iterator[None]:
    """Keep the test's connection, which holds its transaction, open across bare WSGI requests."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.usefixtures("_kept_connection")
def test_the_api_never_breaks() -> None:
    """Every operation of the published schema, with what its schema allows and with what it forbids."""
    factories.ProblemFactory()
    factories.TargetFactory()
    headers = {"Authorization": f"Token {factories.token(factories.UserFactory())}"}
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", application)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 15

    def fuzz(operation: Any, mode: GenerationMode) -> None:
        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        def check(case: Any) -> None:
            response = case.call(headers=headers)
            assert response.status_code < 500, (case.method, case.path, response.text)
            if response.status_code >= 400:
                assert response.headers["content-type"][0] == "application/problem+json"

        check()

    for operation in operations:
        fuzz(operation, GenerationMode.POSITIVE)
        if operation.body:
            fuzz(operation, GenerationMode.NEGATIVE)


PAGES = (
    "/problems/",
    "/submissions/",
    "/submit/",
    "/accounts/tokens/",
    "/accounts/login/",
    "/docs/",
    "/status/",
)
PARAMETERS = (
    "q",
    "page",
    "level",
    "domain",
    "collective",
    "parallelism",
    "bound",
    "state",
    "target",
    "from",
    "next",
    "n",
)


@given(
    path=st.sampled_from(PAGES),
    name=st.sampled_from(PARAMETERS),
    value=st.text(max_size=40)
    | st.integers().map(str)
    | st.just("\0")
    | st.just("9" * 400)
    | st.floats().map(str),
)
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_pages_take_any_parameter(client: Client, path: str, name: str, value: str) -> None:
    factories.ProblemFactory()
    person = factories.UserFactory._meta.model.objects.filter(
        username="fuzz"
    ).first() or factories.UserFactory(username="fuzz")
    client.force_login(person)
    response = client.get(f"{path}?{name}={quote(value.encode('utf-8', 'surrogatepass'))}")
    assert response.status_code < 500
    assert response.status_code in (200, 302, 400, 404)


@given(tail=st.text(max_size=30))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_path_is_answered(client: Client, tail: str) -> None:
    for root in (
        "/",
        "/problems/",
        "/submissions/",
        "/docs/",
        "/api/v1/",
        "/api/v1/problems/",
        "/api/v1/targets/",
    ):
        response = client.get(root + quote(tail.encode("utf-8", "surrogatepass")))
        assert response.status_code < 500, root + tail


@given(
    fields=st.dictionaries(
        st.sampled_from(["problem", "target", "mode", "run", "source", "source_public", "junk"]),
        st.text(max_size=60) | st.sampled_from(["allreduce", "cpu4", "score", "1", "-1", factories.GOOD]),
    )
)
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_form_takes_anything(client: Client, fields: dict[str, str]) -> None:
    factories.ProblemFactory()
    factories.TargetFactory()
    client.force_login(factories.UserFactory())
    clean = {k: v.encode("utf-8", "replace").decode() for k, v in fields.items()}
    assert client.post("/submit/", clean).status_code in (302, 422)


@pytest.mark.parametrize(
    "path",
    ["/problems/a%00/", "/problems/?q=%00", "/boards/cpu4/?size=%00", "/api/v1/problems/a%00b/",
     "/api/v1/submissions/?problem=%00", "/accounts/login/?next=%00", "/docs/%00/"],
)  # fmt: skip
def test_a_nul_in_the_address_is_refused_before_any_database_sees_it(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("application/problem" if "/api/" in path else "text/html")


def test_a_nul_in_a_form_is_no_error_of_ours(client: Client) -> None:
    row = factories.judged(verdict="rejected")
    client.force_login(row.author)
    for action in ("appeal", "withdraw"):
        sent = client.post(f"/submissions/{row.pk}/standing/", {"action": action, "text": "a\0b"})
        assert sent.status_code == 302
    row.refresh_from_db()
    assert (row.removed, row.removed_reason, row.appeals.get().text) == ("withdrawn", "ab", "ab")

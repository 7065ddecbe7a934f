"""Every list of the API is a page with `next`, as docs/api.md says."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils.dateparse import parse_datetime
from drf_spectacular.generators import SchemaGenerator

from portal.submissions.models import Appeal
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]


def make(author: Any) -> dict[str, Any]:
    """Two of everything that is listed."""
    row = factories.judged(author, "rejected")
    factories.judged(author)
    factories.ProblemFactory(slug="allgather")
    factories.TargetFactory(slug="h100x4")
    for number in range(2):
        factories.model_run(author, name=f"r{number}")
    now = parse_datetime("2026-11-29T12:00:00+00:00")
    for ground in Appeal.Ground.values:
        Appeal.objects.create(submission=row, author=author, ground=ground, text="x", created_at=now)
    return {"submission_id": row.pk}


def lists() -> dict[str, Any]:
    """Path and 200 schema of every GET of the published schema whose answer holds many things of one kind."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    found = {}
    for path, verbs in schema["paths"].items():
        content = verbs.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        shape = content.get("application/json", {}).get("schema", {})
        assert shape.get("type") != "array", f"{path} answers a bare array"
        if "/Paginated" in shape.get("$ref", ""):
            found[path] = shape
    return found


def test_every_list_has_pages(api: Callable[..., Any]) -> None:
    author = factories.UserFactory()
    names = make(author)
    client = api(author)
    paths = lists()
    assert {path.split("/")[3] for path in paths} == {"submissions", "runs", "problems", "targets"}
    assert len(paths) == 5  # appeals are listed below their submission
    for path in paths:
        whole = client.get(path.format(**names)).json()
        assert set(whole) == {"next", "previous", "results"}, path
        first = client.get(path.format(**names), {"page_size": 1}).json()
        second = client.get(first["next"]).json()
        assert first["results"] + second["results"] == whole["results"][:2], path
        assert len(whole["results"]) >= 2

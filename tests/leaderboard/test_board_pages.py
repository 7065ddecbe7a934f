"""What readers choose on the boards' pages: columns, problems; all by query parameters."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.test import Client

from leaderboard import columns
from portal.submissions.models import ModelRun
from tests.evaluator import build
from tests.leaderboard.test_models import refresh, score

pytestmark = pytest.mark.django_db


def verified_run(name: str, **fields: Any) -> ModelRun:
    return build.run(build.entrant(name), **({"verified": True, "date": date(2026, 11, 1)} | fields))


def headings(client: Client, query: str = "") -> list[str]:
    page = client.get(f"/boards/models/?target=cpu4{query}").content.decode()
    head = page.partition("<thead>")[2].partition("</thead>")[0]
    return [column.label for column in columns.COLUMNS if f">{column.label}" in head]


def test_columns_are_chosen_by_query_parameters(client: Client) -> None:
    build.problem("a")
    run = verified_run("m")
    score(run, "a", speedup=2.0)
    refresh(run)
    usual = [column.label for column in columns.COLUMNS if column.usual]
    assert headings(client) == usual
    assert headings(client, "&col=harness&col=roof_50") == ["Half of roofline", "Harness"]
    assert headings(client, "&col=nonsense") == usual
    page = client.get("/boards/models/?target=cpu4&col=harness").content.decode()
    assert '<form class="filters filters--wide" method="get">' in page  # no script is needed
    assert 'name="col" value="harness" checked' in page
    assert "col=harness" in page.partition("<thead>")[2].partition("</thead>")[0]  # sorting keeps the choice

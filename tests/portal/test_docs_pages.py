"""The list of documents, the menu beside each, and the way back from the schema."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from portal.pages import documents

pytestmark = pytest.mark.django_db


def test_every_document_but_measurements_has_a_line_that_says_what_it_is(client: Client) -> None:
    text = client.get("/docs/").content.decode()
    for slug, title in documents.titles():
        if "/" not in slug:
            told = re.search(
                rf'<dt><a href="/docs/{slug}/">{re.escape(title)}</a></dt><dd>([^<]+)</dd>', text
            )
            assert told is not None, slug
            assert told[1].strip(), slug


@pytest.mark.parametrize(("slug", "opened"), [("api", False), ("measurements/h200x2", True)])
def test_the_menu_folds_measurements_unless_one_is_read(client: Client, slug: str, opened: bool) -> None:
    text = client.get(f"/docs/{slug}/").content.decode()
    assert ("<details open><summary>Measurements" in text) is opened
    assert 'href="/docs/measurements/h200x1/"' in text.partition("<summary>Measurements")[2]


def test_the_schema_leads_back_and_has_a_dark_look(client: Client) -> None:
    text = client.get("/api/schema/browse/").content.decode()
    assert '<a href="/">' in text
    assert '<a href="/docs/api/">' in text
    assert "css/schema.css" in text
    assert "swagger-ui-bundle.js" in text

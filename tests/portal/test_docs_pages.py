"""The list of documents, the menu beside each, and the way back from the schema."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import caches
from django.test import Client

from portal.pages import documents
from problems.registry import all_problems

MEASURED = Path(__file__).resolve().parents[2] / "docs" / "measurements"

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


def test_a_command_names_the_site_that_shows_it(client: Client) -> None:
    for host in ("testserver", "localhost"):
        text = client.get("/docs/participants/", headers={"host": host}).content.decode()
        assert f"http://{host}/api/v1/submissions/" in text
        assert documents.EXAMPLE_SITE not in text


def test_problems_in_their_table_lead_to_their_pages(client: Client) -> None:
    text = client.get("/docs/problems/").content.decode()
    for problem in all_problems():
        assert f'<td><a href="/problems/{problem.slug}/"><code>{problem.slug}</code></a></td>' in text
    assert not re.search(r'href="/problems/\w', client.get("/docs/api/").content.decode())


def test_every_file_of_figures_that_a_measurement_names_is_a_link_to_it(client: Client) -> None:
    linked = set()
    for slug, _ in documents.titles():
        document = documents.load(slug)
        assert document is not None
        assert not re.search(
            r"(?<!\">)<code>(docs/measurements/)?\w+_20\d+\w*\.(json|txt)</code>", document.html
        )
        linked |= set(re.findall(r'href="(/docs/measurements/[\w.]+\.(?:json|txt))"', document.html))
    assert len(linked) > 20
    kinds = {".json": "application/json", ".txt": "text/plain; charset=utf-8"}
    for address in linked:
        answer = client.get(address)
        kept = MEASURED / Path(address).name
        assert (answer.status_code, answer["Content-Type"]) == (200, kinds[kept.suffix])
        assert answer.content == kept.read_bytes()


@pytest.mark.parametrize(
    "name", ["h200x2.md", "gone.json", "out.json", "folder.json", "..%2Fsecret.json", "%2e%2e/secret.json"]
)
def test_nothing_but_figures_of_that_folder_is_given(
    client: Client, tmp_path: Path, settings: Any, name: str
) -> None:
    settings.BASE_DIR = tmp_path
    folder = tmp_path / "docs" / "measurements"
    (folder / "folder.json").mkdir(parents=True)
    (tmp_path / "docs" / "secret.json").write_text("{}")
    (folder / "out.json").symlink_to(tmp_path / "docs" / "secret.json")
    (folder / "h200x2.md").write_text("`out.json` `in.json`")
    (folder / "in.json").write_text("[]")
    assert client.get("/docs/measurements/in.json").content == b"[]"
    assert client.get(f"/docs/measurements/{name}").status_code in (301, 404)
    assert documents.data_file(name) is None
    document = documents.load("measurements/h200x2")
    assert document is not None
    assert re.findall(r'href="([^"]+)"', document.html) == ["/docs/measurements/in.json"]


@pytest.mark.parametrize("path", ["/docs/judge/", "/docs/", "/docs/measurements/aa_cpu4.json", "/docs/none/"])
@pytest.mark.parametrize("order", ["GET HEAD", "HEAD GET"])
def test_head_says_what_get_says_also_to_who_has_the_document(client: Client, path: str, order: str) -> None:
    for cache in ("near", "pages"):
        caches[cache].clear()

    def ask(verb: str, **headers: str) -> tuple[int, dict[str, str]]:
        answer = client.generic(verb, path, headers=headers)
        return answer.status_code, {**answer.headers, "X-Request-Id": ""}

    first, second = (ask(verb) for verb in order.split())
    assert first == second
    status, told = first
    assert (status == 200) == ("ETag" in told)
    for tag, expected in ((told.get("ETag", '"none"'), 304 if status == 200 else 404), ('"other"', status)):
        asked = [ask(verb, **{"If-None-Match": tag}) for verb in ("GET", "HEAD")]
        assert asked[0] == asked[1]
        assert asked[0][0] == expected


def test_the_schema_leads_back_and_has_a_dark_look(client: Client) -> None:
    text = client.get("/api/schema/browse/").content.decode()
    assert '<a href="/">' in text
    assert '<a href="/docs/api/">' in text
    assert "css/schema.css" in text
    assert "swagger-ui-bundle.js" in text


def test_no_name_of_the_schema_is_made_from_a_hash(client: Client) -> None:
    names = client.get("/api/schema/?format=json").json()["components"]["schemas"]
    enums = {name for name in names if name.endswith("Enum")}
    assert "SubmissionStateEnum" in enums
    assert not [name for name in enums if re.search(r"[0-9a-f]{3}Enum$", name)]


def test_the_schema_groups_its_paths_and_says_what_each_group_is(client: Client) -> None:
    schema = client.get("/api/schema/?format=json").json()
    about = {tag["name"]: tag["description"] for tag in schema["tags"]}
    assert all(about.values())
    used = set()
    for path, verbs in schema["paths"].items():
        for verb in verbs.values():
            assert verb["tags"] == [path.split("/")[3]]
            assert not verb["operationId"].startswith("v1")
            used |= set(verb["tags"])
    assert used == set(about)

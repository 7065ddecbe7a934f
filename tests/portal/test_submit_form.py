"""The form for one file: sizes, errors that are found at once, targets nobody serves, zips sent again."""

import io
import re
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from evaluator.models import Host
from portal.pages.templatetags.portal_ui import ticks
from portal.submissions.models import Submission
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
FIELDS = {"problem": "allreduce", "target": "cpu4", "mode": "check", "source": factories.GOOD}


@pytest.fixture(autouse=True)
def world(client: Client) -> None:
    factories.ProblemFactory()
    now = timezone.now()
    Host.objects.create(name="h", target=factories.TargetFactory(), registered_at=now, last_seen=now)
    client.force_login(factories.UserFactory())


def test_one_size_can_be_asked_for(client: Client) -> None:
    assert client.post("/submit/", FIELDS | {"size": "tiny"}).status_code == 302
    row = Submission.objects.get()
    assert row.size == "tiny"
    again = client.get(f"/submit/?from={row.pk}").content.decode()
    assert '<option value="tiny" selected>' in again
    refused = client.post("/submit/", FIELDS | {"size": "tiny", "mode": "score"})
    assert "Leave `size` out" in str(refused.context["form"].errors["size"])


def test_what_is_wrong_stands_first_has_the_focus_and_leads_to_its_field(client: Client) -> None:
    text = client.post("/submit/", FIELDS | {"source": "x = 1"}).content.decode()
    assert "<title>Not sent: Submit" in text
    summary = text[text.index('role="alert" tabindex="-1" autofocus') :].partition("</div>")[0]
    assert '<a href="#id_source">Source</a>' in summary
    assert "<code>solution</code>" in summary
    assert "`" not in summary
    assert 'id="id_source_error"' in text
    fresh = client.get("/submit/").content.decode()
    assert "autofocus" not in fresh
    assert "<title>Submit" in fresh


def test_a_target_that_nobody_serves_says_so_when_it_is_chosen(client: Client) -> None:
    factories.TargetFactory(slug="h100x4")
    note = r"<p[^>]*data-target-note( hidden)?>No host serves this target now"
    for query, hidden in (("", True), ("?target=cpu4", True), ("?target=h100x4", False)):
        found = re.search(note, client.get(f"/submit/{query}").content.decode())
        assert found is not None
        assert bool(found[1]) is hidden, query
    sent = client.post("/submit/", FIELDS | {"target": "h100x4", "source": ""}).content.decode()
    assert not re.search(note, sent)[1]  # type: ignore[index]


def test_a_zip_sent_again_says_that_it_must_be_chosen_again(client: Client) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("solution.py", factories.GOOD)
    fields: dict[str, Any] = FIELDS | {"source": "", "file": SimpleUploadedFile("a.zip", packed.getvalue())}
    client.post("/submit/", fields)
    zipped = Submission.objects.get()
    client.post("/submit/", FIELDS)
    plain = Submission.objects.exclude(pk=zipped.pk).get()
    for row, told in ((zipped, True), (plain, False)):
        text = client.get(f"/submit/?from={row.pk}").content.decode()
        assert ("What you sent before was a zip." in text) is told


def test_ticks_make_code_of_nothing_but_text() -> None:
    assert ticks("Define `solution`, `<b>`.") == "Define <code>solution</code>, <code>&lt;b&gt;</code>."
    assert ticks("one ` alone & <i>") == "one ` alone &amp; &lt;i&gt;"

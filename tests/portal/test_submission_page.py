"""What a submission's page says, hides and asks twice for."""

from pathlib import Path
from typing import Any

import pytest
import torch
from django.conf import settings
from django.test import Client
from django.utils import timezone

from evaluator.models import Rescore
from leaderboard import services
from leaderboard.models import Score
from portal.pages.words import FLAGS
from problems.compare import compare
from problems.tolerance import Tolerance
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
CARDS = {"device": "cuda", "official": True, "timed": True}


def page_of(client: Client, row: Any, part: str = "") -> str:
    return client.get(f"/submissions/{row.pk}/{part}").content.decode()


def test_a_private_source_is_published_by_two_deeds_and_closed_by_one(client: Client) -> None:
    row = factories.judged()
    client.force_login(row.author)
    text = page_of(client, row)
    assert "<summary>Publish the source…</summary>" in text
    assert 'name="sure" value="yes" required' in text
    refused = client.post(f"/submissions/{row.pk}/visibility/", {"source_public": "yes"}, follow=True)
    row.refresh_from_db()
    assert not row.source_public
    assert "The source stays private" in refused.content.decode()
    client.post(f"/submissions/{row.pk}/visibility/", {"source_public": "yes", "sure": "yes"})
    row.refresh_from_db()
    assert row.source_public
    assert "Publish the source" not in page_of(client, row)
    client.post(f"/submissions/{row.pk}/visibility/", {"source_public": "no"})
    row.refresh_from_db()
    assert not row.source_public


def test_what_a_new_best_waits_for_stands_in_the_verdict(client: Client) -> None:
    row = factories.judged()
    services.record_score(attempt=row.attempts.get())
    Score.objects.update(provisional=True)
    Rescore.objects.create(submission=row, kind=Rescore.Kind.CONFIRM, created_at=timezone.now())
    for part in ("", "live/"):
        text = page_of(client, row, part)
        card = text[text.index('class="card verdict') : text.index("</section>")]
        assert "Provisional" in card
        assert "It is being scored again" in card
        assert text.count("Provisional") == 1


def test_a_roofline_of_nominal_figures_is_not_called_a_limit(client: Client) -> None:
    text = page_of(client, factories.judged())
    assert "Of the nominal roofline" in text
    assert "the least time this target allows" not in text
    cards = factories.TargetFactory(slug="h100x4", spec=CARDS)
    text = page_of(client, factories.judged(target=cards))
    assert "Of the roofline" in text
    assert "nominal" not in text
    assert "the least time this target allows" in text


def test_the_first_wrong_element_says_by_how_much_and_what_was_allowed(client: Client) -> None:
    found = compare(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0]), Tolerance(atol=0.1, rtol=0.01))
    assert found is not None
    assert (found.off_by, found.allowed) == pytest.approx((0.5, 0.12))
    exact = compare(torch.tensor([1]), torch.tensor([2]), Tolerance())
    assert exact is not None
    assert (exact.off_by, exact.allowed) == (None, None)
    first = {"index": [1], "expected": "2", "got": "2.5", "wrong": 1, "total": 2}
    ranks = [
        {"rank": 0, "ok": False, "output": "out", "first_wrong": first | {"off_by": 0.5, "allowed": 0.12}},
        {"rank": 1, "ok": False, "output": "out", "first_wrong": first},  # as older judges wrote it
    ]
    text = page_of(client, factories.judged(verdict="incorrect", result={"ranks": ranks}))
    assert ">Off by</th>" in text
    assert '<td class="num mono">0.5</td><td class="num mono">0.12</td>' in text
    assert '<td class="num mono">–</td><td class="num mono">–</td>' in text


def test_a_file_that_failed_is_spared_what_says_nothing_of_it(client: Client) -> None:
    empty = {"movement": {"own_share": None, "collectives": [], "told": "There is no trace."}}
    flags = [
        {"code": "library_only", "sentence": "All by torch.distributed.", "weight": "note"},
        {"code": "opens_sockets", "sentence": "Opens network connections.", "weight": "review"},
    ]
    for verdict, shown in (("runtime_error", False), ("correct", True)):
        row = factories.judged(verdict=verdict, result=empty, source_name="crash.py")
        row.attempts.update(triage=[f | {"file": "solution.py", "line": 1, "count": 1} for f in flags])
        client.force_login(row.author)
        text = page_of(client, row)
        assert ("How it moves data" in text) is shown
        assert ("All by torch.distributed." in text) is shown
        assert "Opens network connections." in text
        assert "There is no trace." not in text, "on a CPU there is no mechanism to tell"
        assert "crash.py is shown as <code>solution.py</code>" in text
    cards = factories.TargetFactory(slug="h100x4", spec=CARDS)
    built = empty | {"kernels": [{"kernel": "k", "arch": "sm_90"}]}
    text = page_of(client, factories.judged(row.author, "timeout", target=cards, result=built))
    assert "There is no trace." in text


def test_the_glossary_has_every_flag() -> None:
    told = (Path(settings.BASE_DIR) / "docs" / "participants.md").read_text()
    for flag in FLAGS:
        assert f"| `{flag}` |" in told

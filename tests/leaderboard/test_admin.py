"""The admin of scores: lists open, actions call the services with their reason."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluator.models import Rescore
from leaderboard import review
from leaderboard.models import Score
from portal.submissions.models import AuditEvent, Submission
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
URL = "/admin/leaderboard/score/"


@pytest.fixture
def score(client: Client) -> Score:
    client.force_login(factories.UserFactory(is_staff=True, is_superuser=True))
    row = factories.judged()
    (made,) = review.receive(attempt=row.attempts.select_related("submission__run__entrant").get())
    Rescore.objects.all().delete()
    return made


def act(client: Client, score: Score, action: str, reason: str = "because") -> str:
    fields = {"action": action, "reason": reason, "_selected_action": [score.pk]}
    return client.post(URL, fields, follow=True).content.decode()


def test_lists_open(client: Client, score: Score) -> None:
    for path in (URL, f"{URL}{score.pk}/change/", "/admin/leaderboard/review/", "/admin/submissions/appeal/"):
        assert client.get(path).status_code == 200, path


def test_disqualify_and_reinstate(client: Client, score: Score) -> None:
    assert "Give a reason" in act(client, score, "disqualify", reason="")
    act(client, score, "disqualify")
    assert Submission.objects.get().removed == "disqualified"
    act(client, score, "reinstate")
    assert Submission.objects.get().removed == ""
    assert set(AuditEvent.objects.exclude(actor=None).values_list("reason", flat=True)) == {"because"}


@pytest.mark.parametrize("action", ["rescore", "rescore_problem", "rescore_version"])
def test_score_again(client: Client, score: Score, action: str) -> None:
    act(client, score, action)
    assert Rescore.objects.get().kind == "order"


def test_confirm_by_hand(client: Client, score: Score) -> None:
    assert score.provisional
    act(client, score, "confirm")
    score.refresh_from_db()
    assert not score.provisional

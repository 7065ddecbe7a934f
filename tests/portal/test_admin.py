"""The admin: every list and page opens, actions call services, and nothing secret shows."""

from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from portal.submissions.models import AuditEvent
from tests import factories

pytestmark = pytest.mark.django_db

MODELS = ("accounts.user", "accounts.apitoken", "problems.problem", "problems.target", "submissions.submission",
          "submissions.modelrun", "submissions.entrant", "submissions.auditevent")  # fmt: skip


@pytest.fixture
def staff(client: Client) -> Any:
    person = factories.UserFactory(is_staff=True, is_superuser=True)
    client.force_login(person)
    return person


@pytest.mark.parametrize("label", MODELS)
def test_lists_and_pages_open(client: Client, staff: Any, label: str) -> None:
    factories.judged(staff)
    key = factories.token(staff)
    AuditEvent.objects.create(actor=staff, action="a", object_type="x", object_id="1")
    model = apps.get_model(label)
    url = f"/admin/{label.replace('.', '/')}/"
    assert client.get(url).status_code == 200
    page = client.get(f"{url}{model.objects.first().pk}/change/").content.decode()
    assert key not in page
    assert client.get(f"{url}?q=a").status_code == 200


def test_staff_cancel_and_vouch_by_actions(client: Client, staff: Any) -> None:
    row = factories.submission()
    run = factories.model_run(factories.UserFactory())
    client.post(
        "/admin/submissions/submission/", {"action": "cancel_chosen", "_selected_action": [str(row.pk)]}
    )
    client.post("/admin/submissions/modelrun/", {"action": "verify", "_selected_action": [run.pk]})
    row.refresh_from_db()
    run.refresh_from_db()
    assert (row.state, run.verified) == ("cancelled", True)
    assert set(AuditEvent.objects.values_list("actor", flat=True)) == {staff.pk}

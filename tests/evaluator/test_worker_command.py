"""`manage.py evaluator_worker`: what cannot be served is told in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.evaluator import build

pytestmark = pytest.mark.django_db


def refused(target: str) -> str:
    with pytest.raises(CommandError) as caught:
        call_command("evaluator_worker", "--target", target)
    return str(caught.value)


def test_a_slip_in_the_targets_name_is_told_with_the_names_there_are() -> None:
    assert refused("h100").startswith("There is no target 'h100'. Targets: b200x4, cpu4, h100x4,")


def test_a_target_that_only_the_database_lacks_waits_for_the_catalogue() -> None:
    assert "Run `manage.py sync_catalog` first" in refused("h100x4")


def test_missing_cards_are_told_without_a_traceback(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator.worker._clean_leftovers", lambda: None)  # other tests have jobs here
    build.target("h100x4")
    settings.VAR_DIR = tmp_path
    settings.PKB_JUDGE = "evaluator.harness.judge.Judge"
    told = refused("h100x4")
    assert "this host has 0 cards; cards 0, 1, 2, 3 are missing" in told

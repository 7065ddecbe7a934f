"""Success by class of problem: every problem is counted, unsolved ones too."""

from __future__ import annotations

import pytest

from leaderboard import model_board, summaries, taxonomy
from leaderboard.model_board import Filters
from tests.evaluator import build
from tests.leaderboard.test_feeds import confirmed
from tests.leaderboard.test_models import model_run, score

pytestmark = pytest.mark.django_db


def test_classes_hold_all_problems_and_the_best_sample_speaks(client) -> None:
    build.problem("a", level=1, bound="link", parallelism=["tensor"])
    build.problem("b", level=1, bound="memory", parallelism=["tensor", "sequence"])
    build.problem("c", level=3, bound="link")
    run = model_run("m")
    score(run, "a", speedup=2.0)
    score(run, "b", speedup=0.5)
    score(run, "b", verdict="build_error", sample=1)
    confirmed()
    summaries.refresh(run=run, target=build.target(), size="tiny")
    rows = model_board.model_board(target=build.target(), size="tiny", filters=Filters())
    by_level, by_bound, by_kind = taxonomy.taxonomy(
        rows=rows, target=build.target(), size="tiny", slugs=["a", "b", "c"]
    )
    assert by_level.classes == [("level 1", 2), ("level 3", 1)]
    cells = by_level.lines[0][1]
    assert [(c.solved, c.faster, c.problems) for c in cells] == [(2, 1, 2), (0, 0, 1)]
    assert dict(by_bound.classes) == {"link": 2, "memory": 1}
    assert dict(by_kind.classes) == {"none named": 1, "sequence": 1, "tensor": 2}
    page = client.get("/boards/taxonomy/?target=cpu4").content.decode()
    assert "By level" in page
    assert "1 faster" in page


def test_without_runs_a_sentence_stands(client) -> None:
    build.target()
    assert "nothing to divide" in client.get("/boards/taxonomy/").content.decode()

"""A judge that waits less long for what hangs, so that a test of a hang does not cost the product's 20 s."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from evaluator.harness import judge as judge_module
from evaluator.harness.judge import Judge
from problems.registry import Target, load_target

FIRST_CALL_S, CALL_S = 15, 5
"""Far more than any honest file of the tests takes, on a busy machine too. Touching the 3 GiB at which a job is ended
took 4 s here, and once, when the machine had to find free memory first, more than 8."""


def brisk(slug: str) -> Target:
    """The target with shorter deadlines and nothing else changed."""
    target = load_target(slug)
    shorter = {**target.data["deadlines"], "first_call_s": FIRST_CALL_S, "call_s": CALL_S}
    return replace(target, data={**target.data, "deadlines": shorter})


class BriskJudge(Judge):
    """As Judge; can be named in `PKB_JUDGE`."""

    def __init__(self, target: str = "cpu4", **options: Any) -> None:
        with patch.object(judge_module, "load_target", brisk):
            super().__init__(target, **options)

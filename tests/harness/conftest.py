"""One judge for all tests that need none of their own."""

from collections.abc import Iterator

import pytest

from evaluator.harness.judge import Judge
from tests.harness.brisk import BriskJudge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """A judge with warm templates, short of patience with hangs. It builds ahead what `prepare` names."""
    with BriskJudge("cpu4", ahead=True) as made:
        yield made

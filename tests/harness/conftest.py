"""What many tests of the harness need: one judge, and the shim."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from evaluator.harness.judge import Judge
from evaluator.harness.warm import RANK_CODE
from tests.harness.brisk import BriskJudge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """A judge with warm templates, short of patience with hangs. It builds ahead what `prepare` names."""
    with BriskJudge("cpu4", ahead=True) as made:
        yield made


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The shim as a rank imports it, off this process's path again afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(RANK_CODE))
    yield importlib.import_module("shim")
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(RANK_CODE)):
            del sys.modules[name]

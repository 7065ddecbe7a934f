"""The fast subset of the adversary suite; `make adversary` runs all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.harness.sandbox import host_grade
from tests.adversary.catalog import FOLDER, Entry, all_entries
from tests.adversary.clauses import CLAUSES
from tests.adversary.runner import Arena
from tests.harness.brisk import BriskJudge

FAST = [entry for entry in all_entries() if entry.fast]


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    if host_grade().grade == "none":
        pytest.skip("no sandbox on this host: attacks are not run outside of one")
    with Arena(BriskJudge) as made:
        yield made


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("entry", FAST, ids=lambda entry: entry.id)
def test_ends_as_the_manifest_demands(arena: Arena, entry: Entry) -> None:
    outcome = arena.run(entry)

    assert outcome.broken == [], outcome.row()


def test_manifest_and_folder_agree() -> None:
    listed = {entry.file for entry in all_entries()}
    there = {
        str(path.relative_to(FOLDER)) for sub in ("attacks", "honest") for path in (FOLDER / sub).glob("*.py")
    }

    assert listed == there


def test_every_clause_is_known() -> None:
    used = {clause for entry in all_entries() for clause in entry.must_not}

    assert used <= CLAUSES.keys()

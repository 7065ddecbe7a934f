"""What file names say, to the door and to the command line alike."""

from __future__ import annotations

import pytest

from problems import names
from problems.prompts import BACKENDS

CATALOGUE = {"allreduce": 1, "fused_cuda": 2}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("1_allreduce_cuda.py", "allreduce"),
        ("allreduce_cpp.zip", "allreduce"),
        ("allreduce.py", "allreduce"),
        ("2_fused_cuda.py", "fused_cuda"),
        ("2_fused_cuda_triton.py", "fused_cuda"),
    ],
)
def test_a_name_says_its_problem(name: str, slug: str) -> None:
    assert names.problem_of(name, CATALOGUE) == slug


@pytest.mark.parametrize(
    ("name", "code", "slug"),
    [
        ("1_all_reduce_cuda.py", "name.no_problem", "all_reduce"),
        ("2_allreduce.py", "name.numbers_disagree", ""),
        ("allreduce.txt", "name.unknown_form", ""),
    ],
)
def test_a_name_that_says_none_is_told_why(name: str, code: str, slug: str) -> None:
    with pytest.raises(names.BadName) as caught:
        names.problem_of(name, CATALOGUE)
    assert (caught.value.code, caught.value.slug) == (code, slug)


def test_files_are_named_after_every_backend_of_the_prompts() -> None:
    assert set(BACKENDS) <= set(names.BACKENDS)


def test_near_names_come_nearest_first() -> None:
    assert names.near("All-Reduce", ["reduce", "allgather", "allreduce"])[0] == "allreduce"
    assert names.near("", ["reduce"]) == []

"""Files in the style of the published benchmark are judged correct as they are.

They import the helper modules `utils.*`, keep buffers in module-level caches, make groups of their own, print,
guard what needs a card, and use forms of collectives that NCCL takes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.harness.gate import accepted, make_case
from evaluator.harness.judge import Judge
from evaluator.harness.rank import gloo_compat
from evaluator.harness.trustedranks import TrustedRanks
from problems.registry import load_problem
from tests.problems.collective_forms import FORMS

pytestmark = pytest.mark.processes
HERE = Path(__file__).parent
FILES = sorted((HERE / "published").glob("*.py"))
RANKS, CALLS = 4, 3


def slug_of(path: Path) -> str:
    return path.stem.partition("_")[2].rpartition("_")[0]


@pytest.fixture(scope="module")
def ranks() -> Iterator[TrustedRanks]:
    """Ranks that find `utils` as ranks in a sandbox do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(gloo_compat.__file__).parent)
        with TrustedRanks(RANKS) as pool:
            yield pool


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_published_file_is_right_on_fresh_values(ranks: TrustedRanks, path: Path) -> None:
    problem = load_problem(slug_of(path))
    for call in range(CALLS):
        case = make_case(problem, "tiny", RANKS, 20261129, call)
        got = ranks.call(problem, case.args, solution=path)
        assert accepted(problem, case, got) is None, call


@pytest.mark.timeout(300)
def test_the_judge_says_so_too() -> None:
    """In the sandbox, where `utils` comes from the rank's own path and no compiler or card is in reach."""
    with Judge("cpu4") as judge:
        for name in ("1_allreduce_cuda.py", "8_alltoall_cuda.py"):
            path = HERE / "published" / name
            found = judge.score(problem=slug_of(path), solution=path, protocol="check")
            assert found["verdict"] == "correct", found["message"]


def everyone() -> torch.Tensor:
    return torch.arange(8.0) + 10 * torch.arange(4.0).unsqueeze(1)


def expected(rank: int) -> dict[str, torch.Tensor]:
    rows = everyone()
    own = slice(2 * rank, 2 * rank + 2)
    codes = rows.to(torch.float8_e4m3fn).float()
    return {
        "stacked_gather": rows,
        "stacked_gather_by_its_new_name": rows,
        "gather_of_counts": torch.arange(4),
        "reduce_scatter_of_a_stack": rows.sum(0)[own],
        "reduce_scatter_into_a_row": rows.mean(0)[own].view(1, 2),
        "uneven_gather": torch.cat([torch.full((peer + 1,), float(peer)) for peer in range(4)]),
        "uneven_exchange": torch.cat([torch.full((peer + 1,), 10.0 * peer + rank) for peer in range(4)]),
        "batch_with_itself": rows,
        "float8_codes": torch.cat(
            [codes.view(-1), codes[:, own].reshape(-1), codes[0], codes.view(-1)],
        ),
        "coalesced_for_a_device": torch.cat([rows.sum(0), rows.view(-1)]),
        "group_by_the_name_nccl": rows.sum(0),
    }


def test_gloo_takes_what_nccl_takes(ranks: TrustedRanks) -> None:
    """A file that runs on cards runs on the CPU target as well; every form, on every rank."""
    arguments: list[list[Any]] = [[torch.zeros(1)] for _ in range(RANKS)]
    answers = ranks.call(load_problem("allreduce"), arguments, solution=HERE / "collective_forms.py")
    for rank, answer in enumerate(answers):
        wanted = expected(rank)
        assert set(wanted) == {form.__name__ for form in FORMS}
        for name, value in wanted.items():
            assert torch.equal(answer.output[name], value), (rank, name)


def test_the_helpers_for_cards_can_be_imported_without_any(tmp_path: Path, ranks: TrustedRanks) -> None:
    """What needs a card says so when it is called, not when a file that may take another way imports it."""
    source = tmp_path / "imports.py"
    source.write_text(
        "import torch\n"
        "from utils.cuda_helpers import compile_cuda_extension\n"
        "from utils.triton_utils import blockwise_barrier, get_tid, send_signal\n"
        "from utils.parallelkittens_runtime import get_or_create_barrier\n"
        "def solution(tensor):\n"
        "    said = []\n"
        "    for call in (lambda: compile_cuda_extension('x', ''), get_tid):\n"
        "        try:\n"
        "            call()\n"
        "        except RuntimeError as error:\n"
        "            said.append(str(error))\n"
        "    return said\n"
    )
    arguments: list[list[Any]] = [[torch.zeros(1)] for _ in range(RANKS)]
    built, started = ranks.call(load_problem("allreduce"), arguments, solution=source)[0].output
    assert "needs a CUDA build" in built
    # Where Triton is installed, as the common wheel of torch brings it, it speaks for itself.
    assert importlib.util.find_spec("triton") is not None or "needs a CUDA build" in started


def test_a_work_handle_that_does_not_say_how_it_waits_cannot_be_made() -> None:
    class Handle(gloo_compat._Finished):
        pass

    with pytest.raises(TypeError, match="wait"):
        Handle()  # type: ignore[abstract]
    assert gloo_compat._Done([]).wait()

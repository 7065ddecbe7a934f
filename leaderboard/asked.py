"""What a reader asks a board for: pages, twins, charts and API read every query parameter here.

What is left out or empty is the usual. What cannot be meant is InvalidInput (400) and names the parameter and
what would be taken; a name in the path that is unknown is NotFound (404).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from django.core.paginator import Page

from leaderboard import cells, columns, model_board, selectors, subset, summaries
from leaderboard.columns import Column
from leaderboard.model_board import Filters
from leaderboard.model_page import MAX_COMPARED
from leaderboard.model_rows import Contender, ModelRow
from leaderboard.ranking import Policy
from leaderboard.selectors import Kind
from portal.core import query
from portal.core.errors import NotFound
from portal.submissions import policies
from portal.submissions.models import Entrant, ModelRun, Submission
from problems.models import Problem, Target

if TYPE_CHECKING:
    from django.http import QueryDict

OF_MODELS = (
    "size", "runs", *subset.PARAMETERS, "page", "harness", "weights", "reasoning", "as_of", "sort"
)  # fmt: skip
"""Names of what a model board takes beside its target; those of a problem's board follow."""

OF_PROBLEM = ("size", "page", "policy", "kind")
_ID = re.compile(r"[1-9][0-9]{0,17}")
RUNS = ("verified", "community")
YES_NO = ("yes", "no")
POLICIES = ("best", "latest")
KINDS = {"": "everybody", "model": "models", "team": "teams", "person": "people"}


class NoTargets(NotFound):
    """Nothing was set up yet, so there is no board at all."""


def ranked_targets() -> list[Target]:
    """Targets with boards, the official one first."""
    rows = [row for row in Target.objects.active().filter(ranked=True) if row.cells]
    return sorted(rows, key=lambda row: (not row.spec.get("official"), row.slug))


def named_target(slug: str) -> Target:
    """The target of a path; NotFound lists those that have a board."""
    found = Target.objects.active().filter(ranked=True, slug=slug).first()
    if found is None:
        told = query.none_of(slug, [row.slug for row in ranked_targets()])
        raise NotFound("target.not_found", f"There is no board for such a target: {told}")
    return found


def named_problem(slug: str) -> Problem:
    """The problem of a path; NotFound otherwise."""
    found = Problem.objects.active().defer("spec").filter(slug=slug).first()
    if found is None:
        raise NotFound("problem.not_found", f"There is no problem {slug[:80]!r}.")
    return found


def named_entrant(slug: str, user: policies.Viewer) -> Entrant:
    """The entrant of a path; NotFound also where its submissions are private, since names tell plans."""
    found = Entrant.objects.filter(slug=slug).first()
    if found is None or not policies.can_view_entrant(user, found):
        raise NotFound("entrant.not_found", f"There is no model, team or person {slug[:80]!r} here.")
    return found


def size_on(params: QueryDict, target: Target, usual: str = "") -> str:
    """The size asked for; if none is, ``usual`` where the target has it, else its first."""
    sizes = selectors.ranked_sizes(target)
    if not sizes:
        raise NotFound("target.without_board", f"The target {target.slug} has no board.")
    return query.choice(params, "size", sizes, usual if usual in sizes else sizes[0])


class Place(NamedTuple):
    """Target and size that are asked for, and the targets that may be."""

    target: Target
    size: str
    targets: list[Target]


def place(params: QueryDict, where: Sequence[tuple[str, str]] = ()) -> Place:
    """Target and size asked for; what is not given is taken from where there is something to see.

    ``where`` lists (target, size) pairs that have something, the richest first. Raises NoTargets before any
    target is set up.
    """
    targets = ranked_targets()
    if not targets:
        raise NoTargets("target.none", "No target is set up, so there is no board yet.")
    known = {row.slug: row for row in targets}
    where = [pair for pair in where if pair[0] in known]
    asked = query.choice(params, "target", known)
    slug = asked or (where[0][0] if where else _busiest(runs_verified(params), known) or _usual(targets))
    usual = next((size for named, size in where if named == slug), "")
    return Place(known[slug], size_on(params, known[slug], usual), targets)


def _busiest(verified: bool, known: dict[str, Target]) -> str | None:
    """The target on which a run solved most problems."""
    found = summaries.seen().filter(run__verified=verified, target__slug__in=list(known))
    return found.order_by("-solved").values_list("target__slug", flat=True).first()


def _usual(targets: Sequence[Target]) -> str:
    """The usual target, where no run has been judged to its end."""
    return (selectors.usual_target() or targets[0]).slug


def runs_verified(params: QueryDict) -> bool:
    """Whether the verified runs are asked for, not those of the community."""
    return query.choice(params, "runs", RUNS, "verified") == "verified"


def filters(params: QueryDict) -> Filters:
    """Which runs of the model board are asked for, and in which order."""
    return Filters(
        verified=runs_verified(params),
        harness=query.choice(params, "harness", ModelRun.Harness.values),
        weights=query.choice(params, "weights", YES_NO),
        reasoning=query.choice(params, "reasoning", YES_NO),
        as_of=query.day(params, "as_of"),
        sort=query.choice(params, "sort", model_board.SORTS, "fast_1"),
    )


@dataclass(frozen=True, slots=True)
class ModelBoard:
    """What is asked of the model board; without ``columns`` the usual ones are shown."""

    target: Target
    size: str
    filters: Filters
    part: subset.Subset
    page: int
    columns: list[Column]
    columns_asked: bool
    targets: list[Target]

    def load(self) -> Page[Contender]:
        """The page of the board, its rows yet to be read."""
        return model_board.board_page(
            target=self.target, size=self.size, filters=self.filters, page=self.page, slugs=self.part.chosen
        )


def board_of_models(params: QueryDict, *, of: Target | None = None, options: bool = False) -> ModelBoard:
    """What is asked of the model board, on the target of the path or of the parameters.

    ``options``: with what may be asked for as a part of the track.
    """
    target, size, targets = (of, size_on(params, of), [of]) if of else place(params)
    keys = query.several(params, "col", [column.key for column in columns.COLUMNS])
    return ModelBoard(
        target,
        size,
        filters(params),
        subset.read(params, options=options),
        query.page_number(params),
        columns.chosen(keys),
        bool(keys),
        targets,
    )


def board_of_problem(
    params: QueryDict, target: str, problem: str, *, whole: bool = False
) -> selectors.ProblemBoard:
    """The board of one problem as it is asked for, a page of it or the ``whole``."""
    policy = cast(Policy, query.choice(params, "policy", POLICIES, "best"))
    page = query.page_number(params)
    kept = cells.named(
        target, problem, policy
    )  # with target and problem, which are looked up where it is empty
    on, of = (kept[0].target, kept[0].problem) if kept else (named_target(target), named_problem(problem))
    size = size_on(params, on)
    return selectors.problem_board(
        problem=of,
        target=on,
        size=size,
        policy=policy,
        kind=cast(Kind, query.choice(params, "kind", [kind for kind in KINDS if kind])),
        page=None if whole else page,
        cell=next((cell for cell in kept if cell.size == size), None),
    )


def run_of(params: QueryDict, found: Sequence[ModelRow]) -> ModelRow | None:
    """The run asked for among a model's runs, else the newest; None where it has none."""
    slug = query.choice(params, "run", [row.run_slug for row in found])
    return next((row for row in found if row.run_slug == slug), found[0] if found else None)


def compared(params: QueryDict, user: policies.Viewer) -> list[int]:
    """Ids of the runs to compare in the order given, at most six, each one of a model."""
    given = list(dict.fromkeys(value for value in params.getlist("run") if value))
    if len(given) > MAX_COMPARED:
        raise query.refuse(
            "run", "too_many", f"`run`: at most {MAX_COMPARED} are compared, {len(given)} are given."
        )
    ids = [int(value) if _ID.fullmatch(value) else 0 for value in given]
    sent = Submission.objects.visible_to(user).filter(run__in=ids, run__entrant__kind="model")
    known = set(sent.order_by().values_list("run_id", flat=True).distinct())
    for value, pk in zip(given, ids, strict=True):
        if pk not in known:
            text = f"`run` is the `run_id` of a model's run as the board's JSON names it, not {value[:40]!r}."
            raise query.refuse("run", "unknown", text)
    return ids

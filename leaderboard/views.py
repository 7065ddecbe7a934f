"""Pages of the boards, with CSV and JSON twins that share their rows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from leaderboard import asked, imports, selectors
from leaderboard.beside import beside
from leaderboard.tables import csv_text
from portal.core import query


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Where boards begin: the models when a verified run stands, else the problems."""
    return redirect("leaderboard:models" if selectors.has_verified_runs() else "leaderboard:problems")


@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    """The problem boards of the usual target."""
    target = selectors.usual_target()
    if target is None:
        return render(request, "leaderboard/index.html", {"targets": [], "board_kind": "problems"})
    return redirect("leaderboard:target", target=target.slug)


@query.takes("size")
@require_safe
def target_index(request: HttpRequest, target: str) -> HttpResponse:
    """The boards of one target: every problem with its leader."""
    row = asked.named_target(target)
    size = asked.size_on(request.GET, row)
    lines = selectors.board_index(target=row, size=size)
    sizes = selectors.ranked_sizes(row)
    context = {
        "target": row,
        "targets": selectors.targets_with_counts(),
        "size": size,
        "sizes": sizes,
        "size_query": f"?size={size}" if len(sizes) > 1 else "",
        "problems": lines,
        "board_kind": "problems",
        "with_scores": sum(1 for line in lines if line.best),
        "has_imported": imports.are_there(),
    }
    return render(request, "leaderboard/index.html", context)


@query.takes(*asked.OF_PROBLEM)
@require_safe
def problem_board(request: HttpRequest, target: str, problem: str) -> HttpResponse:
    """The board of one problem."""
    board = asked.board_of_problem(request.GET, target, problem)
    history = board.history
    context = {
        "board": board,
        "sizes": selectors.ranked_sizes(board.target),
        "kinds": asked.KINDS.items(),
        "page": board.page,
        "history": history[::-1],
        "imported": imports.imported_of(board),
        "problem": board.problem,
        "beside": beside(board.problem),
    }
    return render(request, "leaderboard/problem.html", context)


@query.takes(*asked.OF_PROBLEM)
@require_safe
def problem_board_csv(request: HttpRequest, target: str, problem: str) -> HttpResponse:
    """The same rows as CSV, all pages of them."""
    board = asked.board_of_problem(request.GET, target, problem, whole=True)
    rows = [selectors.public_row(row, board.target) for row in [*board.rows, *board.provisional]]
    return csv_response(
        f"{board.target.slug}-{board.problem.slug}-{board.size}", selectors.PUBLIC_COLUMNS, rows
    )


@query.takes(*asked.OF_PROBLEM)
@require_safe
def problem_board_json(request: HttpRequest, target: str, problem: str) -> HttpResponse:
    """The same rows as JSON, a page of them."""
    return JsonResponse(board_document(asked.board_of_problem(request.GET, target, problem)))


def board_document(board: selectors.ProblemBoard) -> dict[str, Any]:
    """A problem board as plain data."""
    return {
        "target": board.target.slug,
        "problem": board.problem.slug,
        "size": board.size,
        "policy": board.policy,
        "input_set": "hardened",
        "problem_revision": board.problem.score_revision,
        "scores": board.scores,
        "entrants": board.count,
        "page": board.page.number,
        "pages": board.page.paginator.num_pages,
        "rows": [selectors.public_row(row, board.target) for row in board.rows],
        "provisional": [selectors.public_row(row, board.target) for row in board.provisional],
        "stale": board.stale,
        "imported": [imports.public_row(row) for row in imports.imported_of(board)],
    }


def csv_response(name: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> HttpResponse:
    """A CSV download."""
    response = HttpResponse(csv_text(columns, rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response

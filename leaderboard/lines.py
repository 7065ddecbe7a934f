"""Lines of boards as HTML, one format each: a template takes ten times as long for every one of fifty.

Whatever somebody wrote, and whatever was made of it, goes through ``escape``; figures and ids are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from html import escape

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from leaderboard import figure_cells, marks
from leaderboard.charts import CATEGORY_WORDS, PALETTE_SIZE
from leaderboard.columns import Column
from leaderboard.marks import Mark
from leaderboard.model_page import ProblemOutcome
from leaderboard.model_rows import ModelRow
from leaderboard.selectors import BoardRow, ProblemSummary
from leaderboard.words import UNKNOWN, day, mechanism, milliseconds, share, size_of, speed

_NOTHING = f'<span class="muted">{UNKNOWN}</span>'
_NO_ID = "00000000-0000-0000-0000-000000000000"
_GRADES = {
    "full": ("good", "Sandbox, freezer and limits were all in force."),
    "partial": ("warn", "Sandboxed, but without the freezer or the resource limits."),
    "none": ("bad", "Not isolated: only samples that ship with the portal may run so."),
}
_NOBODY = (f'<td class="num muted">{UNKNOWN}</td><td class="muted">nobody yet</td>', "")
_TIE = '<span class="tag" title="Within the noise floor of the reference, or not to be told apart from it">tie</span>'


@lru_cache
def submission_path() -> tuple[str, str]:
    """What stands before and after the id in the address of a submission; looked up once, not for each line."""
    before, _, after = reverse("pages:submission", args=[_NO_ID]).partition(_NO_ID)
    return before, after


# --- the model board ------------------------------------------------------------------------------


def model_lines(rows: Sequence[ModelRow], columns: Sequence[Column], target: str, size: str) -> SafeString:
    """The rows of the model board, all columns asked for."""
    models, query = reverse("leaderboard:models"), f"&amp;target={escape(target)}&amp;size={escape(size)}"
    return mark_safe("\n".join(_model_line(row, columns, models, query) for row in rows))  # noqa: S308


def _model_line(row: ModelRow, columns: Sequence[Column], models: str, query: str) -> str:
    cells = figure_cells.by_column(row.cells)
    shown = "".join(
        cells[column.key] if column.key in cells else _of_run(row, column.key) for column in columns
    )
    link = escape(f"{models}{row.model_slug}/?run={row.run_slug}") + query
    return (
        f'<tr><td class="num place">{row.place}</td><th scope="row" class="entrant held">'
        f'<span class="entrant__name"><i class="{swatch(row.entrant_id)}" aria-hidden="true"></i>'
        f'<a href="{link}">{escape(row.model)}</a></span> '
        f'<span class="muted small">{escape(" · ".join(row.words))}</span></th>{shown}</tr>'
    )


def _of_run(row: ModelRow, column: str) -> str:
    """A cell about the run or the model itself."""
    if column == "date":
        return f'<td class="nowrap small"><time datetime="{row.day.isoformat()}">{day(row.day)}</time></td>'
    text = {
        "vendor": row.vendor,
        "harness": row.harness,
        "prompt": row.prompt_variant,
        "weights": {True: "open", False: "closed", None: ""}[row.open_weights],
        "reasoning": {True: "yes", False: "no", None: ""}[row.reasoning],
    }[column]
    return f"<td>{escape(text) or UNKNOWN}</td>"


def swatch(entrant_id: int) -> str:
    """CSS class of an entrant's colour, the one that charts use."""
    return f"swatch swatch--{entrant_id % PALETTE_SIZE}"


# --- the board of one problem ---------------------------------------------------------------------


def problem_lines(rows: Sequence[BoardRow], backend: str) -> SafeString:
    """The rows of a problem board on a target with this backend, their intervals on one axis."""
    placed = zip(rows, marks.interval_marks(rows), strict=True)
    return mark_safe("\n".join(_problem_line(row, mark, backend) for row, mark in placed))  # noqa: S308


def waiting_lines(rows: Sequence[BoardRow], backend: str) -> SafeString:
    """The new bests of a problem board that wait for their second measurement; they have no place."""
    return mark_safe("\n".join(_problem_line(row, None, backend) for row in rows))  # noqa: S308


def _problem_line(row: BoardRow, mark: Mark | None, backend: str) -> str:
    before, after = submission_path()
    community = "community" if row.kind == "model" and not row.verified else ""
    who = " · ".join(escape(word) for word in (row.named_run, community) if word)
    fast = speed(row.speedup) if mark is None else f"<strong>{speed(row.speedup)}</strong>"
    ratio = row.memory_ratio
    leaner = f'<br /><span class="muted small">{ratio:.2f} of reference</span>' if ratio else ""
    moves = "".join(tag(mechanism(one)) for one in row.mechanisms)
    flags = "".join(f"<br />{tag(str(flag).replace('_', ' '))}" for flag in row.flags)
    return (
        f'<tr>{_place(row, mark)}<th scope="row" class="entrant held">'
        f'<span class="entrant__name">{escape(row.entrant)}</span> <span class="muted small">{who}</span></th>'
        f'<td class="num"><a href="{before}{row.submission_id}{after}">{fast}</a>'
        f"{f'<br />{_TIE}' if mark is not None and row.tied else ''}</td>{_interval(row, mark)}"
        f'<td class="num nowrap">{milliseconds(row.solution_ms)}</td>'
        f'<td class="num nowrap">{share(row.utilisation)}</td>'
        f'<td class="num nowrap">{size_of(row.peak_bytes)}{leaner}</td>'
        f'<td class="small">{moves or _no_mechanism(backend)}</td>'
        f"<td>{grade(row.isolation_grade)}{flags}</td>"
        f'<td class="nowrap small">{_moment(row.created_at)}</td></tr>'
    )


def _place(row: BoardRow, mark: Mark | None) -> str:
    place = f'<td class="num place">{row.place}</td>'
    return place if mark is not None else f'<td class="num muted">{UNKNOWN}</td>'


def _interval(row: BoardRow, mark: Mark | None) -> str:
    """The bar of a speedup's 95 % interval on the axis that all rows share, with the reference's line."""
    if mark is None:
        return '<td><span class="badge badge--info">provisional</span></td>'
    return (
        '<td class="interval"><svg class="chart" viewBox="0 0 160 16" width="160" height="16" role="img" '
        f'aria-label="{speed(row.speedup_low)} to {speed(row.speedup_high)}">'
        f'<line class="one" x1="{mark.one}" x2="{mark.one}" y1="0" y2="16" />'
        f'<line class="range" x1="{mark.low}" x2="{mark.high}" y1="8" y2="8" />'
        f'<circle class="dot" cx="{mark.x}" cy="8" r="3.5" /></svg></td>'
    )


def _no_mechanism(backend: str) -> str:
    return '<span class="muted">gloo</span>' if backend == "gloo" else _NOTHING


def _moment(at: datetime) -> str:
    """A moment as its day, with the minute in the title."""
    short = day(at)
    return (
        f'<time datetime="{at.isoformat()}" title="{short}, {at.hour:02}:{at.minute:02} UTC">{short}</time>'
    )


def tag(text: str) -> str:
    """A short word in a frame."""
    return f'<span class="tag">{escape(text)}</span>'


def grade(value: str) -> str:
    """An isolation grade as a word, with its meaning."""
    tone, title = _GRADES.get(value, ("info", ""))
    return f'<span class="badge badge--{tone}" title="{title}">{escape(value)}</span>'


# --- problems: the index of boards, and a run problem by problem -----------------------------------


def index_lines(found: Sequence[ProblemSummary], target: str, query: str) -> SafeString:
    """The boards of a target with their leaders; ``query`` is what the link to a board asks for."""
    boards = escape(reverse("leaderboard:target", args=[target]))
    return mark_safe("\n".join(_index_line(one, boards, escape(query)) for one in found))  # noqa: S308


def _index_line(line: ProblemSummary, boards: str, query: str) -> str:
    best, measured = _NOBODY
    if line.best:
        before, after = submission_path()
        tie = f" {_TIE}" if line.best.tied else ""
        best = (
            f'<td class="num"><a href="{before}{line.best.submission_id}{after}">'
            f"<strong>{speed(line.best.speedup)}</strong></a>{tie}</td><td>{escape(line.best.entrant)}</td>"
        )
        measured = grade(line.best.isolation_grade)
    return (
        f'<tr><td class="num muted">{line.number}</td>'
        f'<th scope="row"><a href="{boards}{line.slug}/{query}">{escape(line.title)}</a></th>{best}'
        f'<td class="num">{line.entrants or UNKNOWN}</td><td class="num">{line.level}</td><td>{measured}</td></tr>'
    )


def outcome_lines(found: Sequence[ProblemOutcome], target: str, size: str) -> SafeString:
    """A run problem by problem: how it ended, with a link to the submission that speaks for it."""
    boards = escape(reverse("leaderboard:target", args=[target]))
    return mark_safe("\n".join(_outcome_line(one, boards, escape(size)) for one in found))  # noqa: S308


def _outcome_line(line: ProblemOutcome, boards: str, size: str) -> str:
    before, after = submission_path()
    words = "correct, provisional" if line.provisional else CATEGORY_WORDS[line.category]
    ended = '<span class="muted">not sent</span>'
    if line.submission_id:
        ended = f'<a href="{before}{escape(line.submission_id)}{after}">{words}</a>'
    limits = f"{speed(line.low)} – {speed(line.high)}" if line.speedup else ""
    return (
        f'<tr><td class="num muted">{line.number}</td>'
        f'<th scope="row"><a href="{boards}{line.problem}/?size={size}">{escape(line.title)}</a></th>'
        f'<td>{ended}</td><td class="num">{speed(line.speedup)}</td><td class="num nowrap">{limits}</td>'
        f'<td class="num">{share(line.utilisation)}</td></tr>'
    )

"""What the submission page shows, put together once for the page and its live part."""

from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from evaluator.models import Attempt
from evaluator.selectors import last_attempt, result_attempt
from leaderboard.services import is_official
from portal.pages import figures
from portal.pages.results import public_result
from portal.pages.words import ADVICE, FLAGS, HEADLINES, STAGES, TONES, UNSTEADY
from portal.submissions import bundles, line, policies, serving
from portal.submissions.models import Submission
from portal.submissions.states import WAITING, Mode, State
from problems.highlight import language_of, render

FIRST_DELAY_S = 1.0
SLOWER_BY = 1.25
LONGEST_DELAY_S = 15.0


def mark_of(submission: Submission) -> str:
    """Return what changes when there is news."""
    return f"{submission.state}.{submission.stage}.{submission.verdict}"


def context(submission: Submission, viewer: policies.Viewer, looks: int = 0) -> dict[str, Any]:
    """Return everything but the source. `looks` counts live looks without news: each waits longer."""
    attempt = result_attempt(submission.pk) if submission.is_final else None
    attempt = attempt or last_attempt(submission.pk)
    result = public_result(submission, viewer)
    timing = (result or {}).get("timing")
    return {
        "submission": submission,
        "mark": mark_of(submission),
        "headline": _headline(submission, result),
        "tone": _tone(submission),
        "advice": _advice(submission, viewer),
        "position": line.place_of(submission) if submission.state == State.QUEUED else None,
        "notice": serving.notice(submission.target) if submission.state in WAITING else "",
        "attempt": attempt,
        "stages": _stages(submission, attempt),
        "result": result,
        "ranks": (ranks := _ranks(result)),
        "all_agree": all(row["ok"] for row in ranks),
        "speedup_chart": figures.interval(timing) if timing else None,
        "time_chart": figures.bars(timing, (result or {}).get("roofline")) if timing else None,
        "nominal": submission.target.spec.get("device", "cpu") == "cpu",
        "moved": _moved(result),
        "off_boards": is_official(submission.target) and "noisy" in ((result or {}).get("flags") or []),
        "flags": [(flag, FLAGS.get(flag, "")) for flag in (result or {}).get("flags", [])],
        "discarded": _discarded(timing or {}),
        "can_change": policies.can_change(viewer, submission),
        "can_see_source": policies.can_view_source(viewer, submission),
        "log": attempt.log if attempt and policies.can_view_source(viewer, submission) else "",
        "looks": looks,
        "delay": f"{min(LONGEST_DELAY_S, FIRST_DELAY_S * SLOWER_BY**looks):.1f}s",
    }


def source_context(submission: Submission, viewer: policies.Viewer) -> dict[str, Any]:
    """Return the source as highlighted files for those who may see it."""
    if not policies.can_view_source(viewer, submission):
        return {"files": []}
    with submission.source.open("rb") as stream:
        content = stream.read()
    if bundles.looks_like_zip(content):
        members = bundles.read(content, max_total=len(content) * bundles.MAX_RATIO)
    else:
        members = {"solution.py": content}
    return {
        "files": [
            {
                "name": name,
                "anchor": "L" if name == bundles.MAIN else f"F{index}L",
                "code": render(data.decode("utf-8-sig", "replace"), language_of(name)),
            }
            for index, (name, data) in enumerate(sorted(members.items(), key=lambda m: m[0] != bundles.MAIN))
        ]
    }


def _ranks(result: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return one row a rank with every column present, so that a template can show any of them."""
    rows = []
    for row in (result or {}).get("ranks") or []:
        first = row.get("first_wrong") or {}
        rows.append(
            {
                "rank": row.get("rank"),
                "ok": bool(row.get("ok")),
                "output": row.get("output") or first.get("output") or "–",
                "index": ", ".join(str(i) for i in first.get("index") or []),
                "message": row.get("message") or "",
                "has_first": bool(first),
                **{
                    name: first.get(name)
                    for name in ("expected", "got", "off_by", "allowed", "wrong", "total")
                },
            }
        )
    return rows


def _moved(result: dict[str, Any] | None) -> bool:
    """Whether there is something to tell of how it moves data: a file that failed was seldom traced."""
    known = result or {}
    movement = known.get("movement") or {}
    seen = movement.get("collectives") or known.get("mechanisms") or known.get("kernels")
    return bool(seen) or (bool(movement) and known.get("verdict") == "correct")


def _discarded(timing: dict[str, Any]) -> list[str]:
    """Return a line for each round of measurement that did not count, and for a last one that should not have."""
    lines = [
        f"Round {number} did not count: {_because(row.get('why') or [])}."
        for number, row in enumerate(timing.get("discarded") or [], 1)
    ]
    if last := timing.get("unsteady"):
        lines.append(f"The last round counts with doubt: {_because(last)}.")
    return lines


def _because(why: list[str]) -> str:
    return "; ".join(UNSTEADY.get(code, code) for code in why)


def _headline(submission: Submission, result: dict[str, Any] | None) -> str:
    """Return the first thing to read: what came out, with the speedup where there is one."""
    if submission.removed:
        by_author = submission.removed == Submission.Removed.WITHDRAWN
        return "Withdrawn by its author" if by_author else "Disqualified"
    timing = (result or {}).get("timing") or {}
    speedup = timing.get("speedup")
    if submission.verdict == "correct" and speedup:
        if "below_resolution" in ((result or {}).get("flags") or []):
            return "Correct; the call is too short to tell its time from the reference's"
        if speedup > 1 and "noisy" in ((result or {}).get("flags") or []):
            return f"Correct; {speedup:.2f}× on an unsteady machine, which counts as no faster"
        low, high = timing.get("speedup_low") or speedup, timing.get("speedup_high") or speedup
        if low <= 1 <= high:
            return f"Correct, as fast as the reference ({speedup:.2f}×)"
        if speedup > 1:
            return f"Correct and {speedup:.2f}× faster than the reference"
        return f"Correct, but slower than the reference ({speedup:.2f}×)"
    return HEADLINES.get(submission.verdict or submission.state, submission.state)


def _advice(submission: Submission, viewer: policies.Viewer) -> str:
    """Return what to do now, for those who can: it speaks of the log, an appeal, a new try."""
    if not policies.can_change(viewer, submission):
        return ""
    return ADVICE.get(submission.code) or ADVICE.get(submission.verdict, "")


def _tone(submission: Submission) -> str:
    if submission.removed:
        return "warn"
    return TONES.get(submission.verdict or submission.state, "info")


def _unexpected(submission: Submission) -> set[str]:
    """Return the stages that are not announced: too short to matter, or not part of this mode on this target."""
    skipped = {"received"}
    if submission.mode != Mode.PROFILE:
        skipped.add("profiling")
    if submission.mode == Mode.CHECK or not submission.target.spec.get("timed", True):
        skipped |= {"warmup", "timing"}
    return skipped


def _stages(submission: Submission, attempt: Attempt | None) -> list[dict[str, Any]]:
    """Return the stages in order with when each began and how long it took."""
    began: dict[str, datetime] = {}
    for entry in attempt.stages if attempt else []:
        at = parse_datetime(str(entry.get("at", "")))
        if at is not None:
            began.setdefault(str(entry.get("stage")), at)
    reached = [("queued", submission.queued_at or submission.created_at)]
    reached += [(name, began[name]) for name in STAGES if name in began]
    ends = [*(at for _, at in reached[1:]), submission.finished_at]
    took = {name: (end - at).total_seconds() for (name, at), end in zip(reached, ends, strict=True) if end}
    starts = dict(reached)
    skipped = _unexpected(submission)
    order = ["queued", *(name for name in STAGES if name not in skipped or name in began)]
    last = reached[-1][0]
    return [
        {
            "name": STAGES.get(name, name),
            "at": starts.get(name),
            "took": took.get(name),
            "is_past": name in starts and (name != last or submission.is_final),
            "is_now": name == last and not submission.is_final,
        }
        for name in order
        if not (submission.is_final and name not in starts)
    ]

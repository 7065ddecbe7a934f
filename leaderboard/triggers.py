"""Database triggers that notice every write that changes a board, whoever does it and however.

A queryset's ``update()``, a form of the admin, another service or plain SQL: each marks the stored figures
that it touches as due (``BoardCell.due``, ``RunSummary.due``) and adds one to the board version, in the
same transaction. Readers compute again what is due, and cached pages are keyed by the version, so nothing
stale is shown after the commit.

They are made after every ``migrate``. On SQLite they are dropped before it, since Django rebuilds tables
there and SQLite refuses to rename a table while a trigger names one that is missing.
"""

# ruff: noqa: S608 (all names in these statements are constants of this module)
from __future__ import annotations

from typing import Any

from django.db import connections

SLOTS = 64
"""Counters of the version; writers take one by their connection, so they seldom wait for each other."""

_CELL = "leaderboard_boardcell"
_CELL_COLUMNS = (
    "target_id, problem_id, size, due, rules, entrants, standing, waiting, scores, stale, best, latest, "
    "awaiting, records"
)
_CELL_EMPTY = "'', 0, 0, 0, '{}', '{}', '[]', '[]', '[]', '[]'"

TOUCHED = (
    "problems_problem",
    "problems_target",
    "submissions_entrant",
    "submissions_modelrun",
    "leaderboard_runsummary",
    "leaderboard_exportversion",
    "leaderboard_importedresult",
)
"""Tables of which every new or deleted row, and every changed one but summaries, may show on a board."""

_COMPUTED = ("leaderboard_runsummary",)
# What of a submission counts for the figures of its run, and what for a problem board.
_OF_RUN = ("removed", "results_public", "verdict", "mode", "sample", "step", "run_id")
_OF_CELL = ("removed", "results_public")
_ENDED_WITHOUT = "cancelled"  # a state that frees a sample, which other states do not
# What of a problem counts for the figures of every run, beside the track that its declaration names.
_OF_TRACK = ("score_revision", "active", "slug", "number")


def install(using: str) -> None:
    """Make all triggers on a database, replacing those that are there."""
    connection = connections[using]
    statements = _postgres() if connection.vendor == "postgresql" else _sqlite()
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def drop(using: str) -> None:
    """Remove them from an SQLite database, before its tables are rebuilt."""
    connection = connections[using]
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'pkb_%'")
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP TRIGGER {name}")


def after_migrate(using: str, **_: Any) -> None:
    """Handler of ``post_migrate``; makes nothing while a table is missing (migrated back to nothing)."""
    needed = {*TOUCHED, _CELL, "leaderboard_boardversion", "leaderboard_score", "submissions_submission"}
    connection = connections[using]
    if needed <= set(connection.introspection.table_names()):
        install(using)


def before_migrate(using: str, **_: Any) -> None:
    """Handler of ``pre_migrate``."""
    drop(using)


# --- PostgreSQL: one call per statement, however many rows it changes ---------------------------------

_BUMP = f"""
CREATE OR REPLACE FUNCTION pkb_bump() RETURNS void LANGUAGE sql AS $$
    INSERT INTO leaderboard_boardversion AS v (slot, changes) VALUES (pg_backend_pid() % {SLOTS}, 1)
    ON CONFLICT (slot) DO UPDATE SET changes = v.changes + 1
$$"""

# A deleted score makes no cell: its problem or target may be going in the same statement.
_SCORES = f"""
CREATE OR REPLACE FUNCTION pkb_scores_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM changed) THEN RETURN NULL; END IF;
    IF TG_OP = 'DELETE' THEN
        UPDATE {_CELL} cell SET due = true
            FROM (SELECT DISTINCT target_id, problem_id, size FROM changed) c
            WHERE cell.target_id = c.target_id AND cell.problem_id = c.problem_id AND cell.size = c.size;
    ELSE
        INSERT INTO {_CELL} ({_CELL_COLUMNS})
            SELECT target_id, problem_id, size, true, {_CELL_EMPTY}
            FROM (SELECT DISTINCT target_id, problem_id, size FROM changed ORDER BY 1, 2, 3) places
            ON CONFLICT (target_id, problem_id, size) DO UPDATE SET due = true;
    END IF;
    UPDATE leaderboard_runsummary s SET due = true
        FROM (SELECT DISTINCT run_id, target_id, size FROM changed) c
        WHERE s.run_id = c.run_id AND s.target_id = c.target_id AND s.size = c.size;
    PERFORM pkb_bump();
    RETURN NULL;
END $$"""

_SUBMISSIONS = """
CREATE OR REPLACE FUNCTION pkb_submissions_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM changed) THEN RETURN NULL; END IF;
    UPDATE leaderboard_runsummary s SET due = true
        FROM (SELECT DISTINCT run_id, target_id FROM changed) c
        WHERE s.run_id = c.run_id AND s.target_id = c.target_id;
    PERFORM pkb_bump();
    RETURN NULL;
END $$"""


def _both(names: tuple[str, ...], one: str, other: str) -> str:
    """Say in PostgreSQL that any of the columns differs."""
    left, right = (", ".join(f"{side}.{name}" for name in names) for side in (one, other))
    return f"({left}) IS DISTINCT FROM ({right})"


_SUBMISSIONS_UPDATED = f"""
CREATE OR REPLACE FUNCTION pkb_submissions_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM before b JOIN changed c USING (id)
                   WHERE {_both(("state", *_OF_RUN), "b", "c")}) THEN RETURN NULL; END IF;
    UPDATE {_CELL} cell SET due = true
        FROM (SELECT DISTINCT s.target_id, s.problem_id, s.size
              FROM before b JOIN changed c USING (id) JOIN leaderboard_score s ON s.submission_id = c.id
              WHERE {_both(_OF_CELL, "b", "c")}) x
        WHERE cell.target_id = x.target_id AND cell.problem_id = x.problem_id AND cell.size = x.size;
    UPDATE leaderboard_runsummary s SET due = true
        FROM (SELECT DISTINCT r.run_id, r.target_id
              FROM before b JOIN changed c USING (id),
                   LATERAL (VALUES (b.run_id, b.target_id), (c.run_id, c.target_id)) r (run_id, target_id)
              WHERE {_both(_OF_RUN, "b", "c")} OR b.state <> c.state AND c.state = '{_ENDED_WITHOUT}') x
        WHERE s.run_id = x.run_id AND s.target_id = x.target_id;
    PERFORM pkb_bump();
    RETURN NULL;
END $$"""

_PROBLEMS_UPDATED = f"""
CREATE OR REPLACE FUNCTION pkb_problems_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM before b JOIN changed c USING (id)
               WHERE b.score_revision IS DISTINCT FROM c.score_revision) THEN
        UPDATE {_CELL} SET due = true
            WHERE problem_id IN (SELECT c.id FROM before b JOIN changed c USING (id)
                                 WHERE b.score_revision IS DISTINCT FROM c.score_revision);
    END IF;
    IF EXISTS (SELECT 1 FROM before b JOIN changed c USING (id)
               WHERE {_both(_OF_TRACK, "b", "c")} OR b.spec -> 'track' IS DISTINCT FROM c.spec -> 'track') THEN
        UPDATE leaderboard_runsummary SET due = true;
    END IF;
    RETURN NULL;
END $$"""

_TRACK_CHANGED = """
CREATE OR REPLACE FUNCTION pkb_track_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE leaderboard_runsummary SET due = true;
    RETURN NULL;
END $$"""

_ENTRANTS_UPDATED = f"""
CREATE OR REPLACE FUNCTION pkb_entrants_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM before b JOIN changed c USING (id) WHERE b.kind <> c.kind) THEN
        UPDATE {_CELL} SET due = true;
    END IF;
    RETURN NULL;
END $$"""

_TOUCHED = """
CREATE OR REPLACE FUNCTION pkb_touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pkb_bump();
    RETURN NULL;
END $$"""

_TOUCHED_UPDATE = """
CREATE OR REPLACE FUNCTION pkb_touched_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM before b JOIN changed c USING (id) WHERE b.* IS DISTINCT FROM c.*) THEN
        PERFORM pkb_bump();
    END IF;
    RETURN NULL;
END $$"""

_ROWS = {
    "insert": "REFERENCING NEW TABLE AS changed",
    "update": "REFERENCING OLD TABLE AS before NEW TABLE AS changed",
    "delete": "REFERENCING OLD TABLE AS changed",
}


def _on(table: str, event: str, function: str, name: str = "") -> list[str]:
    trigger = f"pkb_{name or table}_{event}"
    return [
        f"DROP TRIGGER IF EXISTS {trigger} ON {table}",
        f"CREATE TRIGGER {trigger} AFTER {event.upper()} ON {table} {_ROWS[event]} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
    ]


def _postgres() -> list[str]:
    made = [
        _BUMP, _SCORES, _SUBMISSIONS, _SUBMISSIONS_UPDATED, _PROBLEMS_UPDATED, _ENTRANTS_UPDATED,
        _TOUCHED, _TOUCHED_UPDATE, _TRACK_CHANGED,
    ]  # fmt: skip
    for event in ("insert", "update", "delete"):
        made += _on("leaderboard_score", event, "pkb_scores_changed")
    made += _on("submissions_submission", "insert", "pkb_submissions_changed")
    made += _on("submissions_submission", "update", "pkb_submissions_updated")
    made += _on("submissions_submission", "delete", "pkb_submissions_changed")
    made += _on("problems_problem", "update", "pkb_problems_updated", "revision")
    made += _on("problems_problem", "insert", "pkb_track_changed", "track")
    made += _on("problems_problem", "delete", "pkb_track_changed", "track")
    made += _on("submissions_entrant", "update", "pkb_entrants_updated", "kind")
    for table in TOUCHED:
        made += _on(table, "insert", "pkb_touched") + _on(table, "delete", "pkb_touched")
        if table not in _COMPUTED:
            made += _on(table, "update", "pkb_touched_update")
    return made


# --- SQLite: one call per row; there is one writer at a time anyway ------------------------------------

_BUMP_ONE = """
    INSERT INTO leaderboard_boardversion (slot, changes) VALUES (0, 1)
    ON CONFLICT (slot) DO UPDATE SET changes = changes + 1;"""


def _differs(names: tuple[str, ...]) -> str:
    return " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in names)


def _trigger(name: str, when: str, body: str) -> list[str]:
    return [f"DROP TRIGGER IF EXISTS {name}", f"CREATE TRIGGER {name} AFTER {when} BEGIN {body} END"]


_CELL_OF_SCORE = f"""
    INSERT INTO {_CELL} ({_CELL_COLUMNS}) VALUES (NEW.target_id, NEW.problem_id, NEW.size, 1, {_CELL_EMPTY})
        ON CONFLICT (target_id, problem_id, size) DO UPDATE SET due = 1;"""
_CELL_OF_DELETED_SCORE = f"""
    UPDATE {_CELL} SET due = 1
        WHERE target_id = OLD.target_id AND problem_id = OLD.problem_id AND size = OLD.size;"""


def _due_summary_of_score(row: str) -> str:
    return f"""
    UPDATE leaderboard_runsummary SET due = 1
        WHERE run_id = {row}.run_id AND target_id = {row}.target_id AND size = {row}.size;"""


def _due_run(row: str) -> str:
    return (
        f"UPDATE leaderboard_runsummary SET due = 1 "
        f"WHERE run_id = {row}.run_id AND target_id = {row}.target_id;"
    )


_DUE_CELLS_OF_SUBMISSION = f"""
    UPDATE {_CELL} SET due = 1 WHERE EXISTS (
        SELECT 1 FROM leaderboard_score s WHERE s.submission_id = NEW.id
        AND s.target_id = {_CELL}.target_id AND s.problem_id = {_CELL}.problem_id AND s.size = {_CELL}.size);"""


def _sqlite() -> list[str]:
    made: list[str] = []
    for event, cell, row in (
        ("INSERT", _CELL_OF_SCORE, "NEW"),
        ("UPDATE", _CELL_OF_SCORE, "NEW"),
        ("DELETE", _CELL_OF_DELETED_SCORE, "OLD"),
    ):
        body = cell + _due_summary_of_score(row) + _BUMP_ONE
        made += _trigger(f"pkb_score_{event.lower()}", f"{event} ON leaderboard_score", body)
    table = "submissions_submission"
    made += _trigger("pkb_submission_insert", f"INSERT ON {table}", _due_run("NEW") + _BUMP_ONE)
    made += _trigger("pkb_submission_delete", f"DELETE ON {table}", _due_run("OLD") + _BUMP_ONE)
    made += _trigger(
        "pkb_submission_moved", f"UPDATE ON {table} WHEN {_differs(('state', *_OF_RUN))}", _BUMP_ONE
    )
    both = _due_run("OLD") + _due_run("NEW")
    freed = f"OLD.state IS NOT NEW.state AND NEW.state = '{_ENDED_WITHOUT}'"
    made += _trigger("pkb_submission_counts", f"UPDATE ON {table} WHEN {_differs(_OF_RUN)} OR {freed}", both)
    shown = f"UPDATE ON {table} WHEN {_differs(_OF_CELL)}"
    made += _trigger("pkb_submission_shown", shown, _DUE_CELLS_OF_SUBMISSION)
    made += _trigger(
        "pkb_problem_revision",
        "UPDATE ON problems_problem WHEN OLD.score_revision IS NOT NEW.score_revision",
        f"UPDATE {_CELL} SET due = 1 WHERE problem_id = NEW.id;",
    )
    counts = (
        f"{_differs(_OF_TRACK)} OR json_extract(OLD.spec, '$.track') IS NOT json_extract(NEW.spec, '$.track')"
    )
    for name, when in (("insert", "INSERT"), ("delete", "DELETE"), ("update", "UPDATE")):
        on = f"{when} ON problems_problem" + (f" WHEN {counts}" if when == "UPDATE" else "")
        made += _trigger(f"pkb_track_{name}", on, "UPDATE leaderboard_runsummary SET due = 1;")
    made += _trigger(
        "pkb_entrant_kind",
        "UPDATE ON submissions_entrant WHEN OLD.kind IS NOT NEW.kind",
        f"UPDATE {_CELL} SET due = 1;",
    )
    for table in TOUCHED:
        events = ("INSERT", "DELETE") if table in _COMPUTED else ("INSERT", "UPDATE", "DELETE")
        for event in events:
            made += _trigger(f"pkb_{table}_{event.lower()}", f"{event} ON {table}", _BUMP_ONE)
    return made

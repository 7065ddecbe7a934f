"""Reads that pages and API share."""

from collections import Counter
from dataclasses import dataclass

from problems import names
from problems.models import Problem, Target


def find_problem(word: str) -> Problem | None:
    """Return the problem of this number or slug, None when there is none."""
    active = Problem.objects.active()
    numbered = word.isascii() and word.isdigit() and len(word) < 5
    found = active.filter(number=int(word)).first() if numbered else None
    return found or active.filter(slug=word).first()


def near_problems(text: str) -> list[str]:
    """Return slugs that somebody who wrote `text` may have meant, the nearest first."""
    return names.near(text, Problem.objects.active().values_list("slug", flat=True))


def unknown_problem(text: str, listed_at: str = "/api/v1/problems/") -> str:
    """Say that there is no such problem, which ones are called nearly so, and where all of them are."""
    near = near_problems(text)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no problem {text[:80]!r}.{hint} All of them: {listed_at}."


def target_slugs() -> list[str]:
    """Return the slugs of the targets that submissions may name."""
    return list(Target.objects.active().order_by("slug").values_list("slug", flat=True))


def unknown_target(text: str) -> str:
    """Say that there is no such target, and which there are."""
    return f"There is no target {text[:80]!r}. Targets: {', '.join(target_slugs()) or 'none yet'}."


@dataclass(frozen=True)
class Facets:
    """The values that the problem list can be filtered by; `total` counts the problems."""

    levels: list[int]
    domains: list[str]
    parallelism: list[str]
    collectives: list[str]
    bounds: list[str]
    tracks: list[str]
    targets: list[str]
    total: int


def facets() -> Facets:
    """Return the values in use, sorted."""
    columns = ("level", "domain", "parallelism", "collectives", "bound", "spec__track")
    rows = list(Problem.objects.active().values(*columns))
    targets = Target.objects.active().filter(ranked=True).order_by("slug")
    return Facets(
        levels=sorted({row["level"] for row in rows}),
        domains=sorted({row["domain"] for row in rows}),
        parallelism=sorted({item for row in rows for item in row["parallelism"]}),
        collectives=sorted({item for row in rows for item in row["collectives"]}),
        bounds=sorted({row["bound"] for row in rows if row["bound"]}),
        tracks=sorted({row["spec__track"] for row in rows if row["spec__track"]}),
        targets=list(targets.values_list("slug", flat=True)),
        total=len(rows),
    )


@dataclass(frozen=True)
class MapCell:
    """The problems of one kind of parallelism on one level."""

    level: int
    count: int
    step: int  # shade, 0 (none) to 5 (as many as the fullest cell)


@dataclass(frozen=True)
class MapLine:
    """One kind of parallelism over all levels; `total` counts its problems."""

    parallelism: str
    cells: list[MapCell]
    total: int


@dataclass(frozen=True)
class TaxonomyMap:
    """Parallelism by level. A problem with several kinds counts in each line, and once in `totals`."""

    levels: list[int]
    lines: list[MapLine]
    totals: list[tuple[int, int]]
    problems: int


def taxonomy_map() -> TaxonomyMap:
    """Count the active problems by parallelism and level."""
    rows = list(Problem.objects.active().values_list("level", "parallelism"))
    counts = Counter((kind, level) for level, kinds in rows for kind in set(kinds))
    per_level = Counter(level for level, _ in rows)
    levels = sorted(per_level)
    fullest = max(counts.values(), default=1)
    lines = []
    for kind in sorted({kind for kind, _ in counts}):
        cells = [
            MapCell(level, counts[kind, level], -(-5 * counts[kind, level] // fullest)) for level in levels
        ]
        lines.append(MapLine(kind, cells, sum(cell.count for cell in cells)))
    return TaxonomyMap(levels, lines, [(level, per_level[level]) for level in levels], len(rows))

"""A part of the track that a reader asked for: by level, domain, parallelism, or a list of problems."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leaderboard import metrics, summaries
from portal.core import query
from problems.models import Problem

if TYPE_CHECKING:
    from django.http import QueryDict

PARAMETERS = ("level", "domain", "parallelism", "problems")
MOST_TEXT = 1000
_RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Subset:
    """What was asked, the problems it names (``slugs``, in the track's order), and what may be asked."""

    level: str
    domain: str
    parallelism: str
    given: str
    slugs: tuple[str, ...]
    levels: tuple[str, ...]
    domains: tuple[str, ...]
    parallelisms: tuple[str, ...]

    @property
    def asked(self) -> bool:
        """Whether it is less than the track that was asked for."""
        return bool(self.level or self.domain or self.parallelism or self.given)

    @property
    def chosen(self) -> tuple[str, ...] | None:
        """The problems asked for; None for the whole track, whose figures are kept."""
        return self.slugs if self.asked else None

    @property
    def words(self) -> str:
        """What was asked, in words."""
        parts = (
            f"level {self.level}" if self.level else "",
            self.domain,
            f"{self.parallelism} parallel" if self.parallelism else "",
            f"a list of {self.given}" if self.given else "",
        )
        return ", ".join(part for part in parts if part)


def read(params: QueryDict, *, options: bool = False) -> Subset:
    """The subset of a request's parameters: ``level``, ``domain``, ``parallelism``, ``problems``.

    ``problems`` lists slugs, numbers and ranges of numbers. InvalidInput (400) names the parameter whose value
    no problem has. Nothing is looked up without any of them and without ``options`` (what may be asked).
    """
    asked = [query.given(params, name).strip() for name in PARAMETERS]
    if not (options or any(asked)):
        return Subset("", "", "", "", (), (), (), ())
    levels, domains, parallelisms = _options()
    level = query.choice(params, "level", levels)
    domain = query.choice(params, "domain", domains)
    parallelism = query.choice(params, "parallelism", parallelisms)
    given = asked[-1]
    slugs = _slugs(level, domain, parallelism, given) if any(asked) else ()
    return Subset(level, domain, parallelism, given, slugs, levels, domains, parallelisms)


def _options() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Levels, domains and kinds of parallelism that problems have."""
    rows = Problem.objects.active().order_by().values_list("level", "domain", "parallelism").distinct()
    levels, domains, kinds = zip(*rows, strict=True) if rows else ((), (), ())
    return (
        tuple(str(level) for level in sorted(set(levels))),
        tuple(sorted(set(domains))),
        tuple(sorted({kind for several in kinds for kind in several})),
    )


def _slugs(level: str, domain: str, parallelism: str, given: str) -> tuple[str, ...]:
    """The problems of the track that fit, in its order."""
    track = Problem.objects.active().of_track().order_by("number")
    rows = list(track.values_list("slug", "number", "level", "domain", "parallelism"))
    wanted = _listed(given, {slug: number for slug, number, *_ in rows})
    return tuple(
        slug
        for slug, _, of_level, of_domain, kinds in rows
        if (not level or str(of_level) == level)
        and (not domain or of_domain == domain)
        and (not parallelism or parallelism in kinds)
        and (not given or slug in wanted)
    )


def _listed(given: str, numbers: Mapping[str, int]) -> set[str]:
    """Slugs of a list such as ``1-10, ring_attention 40``; InvalidInput names a word that stands for nothing."""
    if len(given) > MOST_TEXT:
        raise query.refuse("problems", "too_long", f"`problems` holds at most {MOST_TEXT} characters.")
    by_number = {str(number): slug for slug, number in numbers.items()}
    found: set[str] = set()
    for word in filter(None, re.split(r"[\s,;]+", given)):
        if match := _RANGE.fullmatch(word):
            first, last = int(match[1]), int(match[2])
            here = {slug for slug, number in numbers.items() if first <= number <= last}
        else:
            slug = word if word in numbers else by_number.get(word)
            here = {slug} if slug else set()
        if not here:
            raise query.refuse(
                "problems", "unknown",
                f"problems: {query.none_of(word, numbers)} Numbers and ranges of numbers such as 1-10 are taken too.",
            )  # fmt: skip
        found |= here
    return found


# --- figures of a run over a subset ----------------------------------------------------------------


def samples_of(detail: Mapping[str, Any], slugs: frozenset[str]) -> list[metrics.Sample]:
    """The samples that a run's stored detail holds, of some problems."""
    return [
        metrics.Sample(slug, sample, counts, speedup, utilisation, resolved)
        for slug, sample, _, speedup, counts, utilisation, resolved, _ in detail["samples"]
        if slug in slugs
    ]


def sort_values(detail: Mapping[str, Any], slugs: Sequence[str], n: int) -> dict[str, Any]:
    """What the model board sorts by, over a subset."""
    samples = samples_of(detail, frozenset(slugs))
    n = max(n, 1 + max((sample.sample for sample in samples), default=0))
    solved = metrics.good_counts(samples, slugs, n, metrics.is_correct)
    fast = metrics.good_counts(samples, slugs, n, metrics.faster_than(1.0))
    size = max(len(slugs), 1)
    return {
        "pass_1": round(sum(solved.values()) / n / size, summaries.DIGITS),
        "fast_1": round(sum(fast.values()) / n / size, summaries.DIGITS),
        "solved": sum(1 for count in solved.values() if count),
        "geometric_mean": metrics.geometric_mean_speedup(samples, slugs).whole or 0.0,
    }


def figures(detail: Mapping[str, Any], slugs: Sequence[str], n: int, *, bands: bool) -> dict[str, Any]:
    """A run's figures over a subset, without what has no meaning there (mechanisms, climb)."""
    wanted = frozenset(slugs)
    here = [entry for entry in detail["samples"] if entry[0] in wanted]
    ended = Counter(entry[2] for entry in here)
    values = summaries.figures_of(samples_of(detail, wanted), ended, slugs, n, bands=bands)
    return values | {
        "provisional": len({entry[0] for entry in here if entry[7]}),
        "mechanisms": {},
        "climb": [],
    }

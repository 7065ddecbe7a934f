"""Prompts of catalogued problems, and all of them as one archive of reproducible bytes."""

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass

from portal.core.errors import InvalidInput
from problems.models import Problem, Target
from problems.prompts import DTYPES, VARIANTS, Prompt, backends_of, build_prompt
from problems.registry import DEFAULT_TRACK

DEFAULT_TARGET = "h100x4"
_HARDWARE = ("device", "arch", "peaks_tflops", "memory_gbs", "link_gbs", "in_network_reduction", "timed")
_THEN = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip can hold


@dataclass(frozen=True)
class Choice:
    """A checked choice of what a prompt is for. `backends` are those asked for, one or all of the target's."""

    target: Target
    variant: str
    backends: tuple[str, ...]
    dtype: str

    def prompt(self, problem: Problem, backend: str = "") -> Prompt:
        """Return the prompt of a problem, in the first of the backends unless told."""
        target = self.target
        hardware = {
            "title": target.title,
            "ranks": target.ranks,
            "backend": target.backend,
            "cells": list(target.cells),
        }
        return build_prompt(
            slug=problem.slug,
            title=f"{problem.title} (problem {problem.number}, `{problem.slug}`)",
            spec=problem.spec,
            target=target.slug,
            hardware=hardware | {key: target.spec.get(key) for key in _HARDWARE},
            variant=self.variant,
            backend=backend or self.backends[0],
            dtype=self.dtype,
        )


def choose(*, target: str = "", variant: str = "", backend: str = "", dtype: str = "") -> Choice:
    """Return the choice; what is empty is the usual. Raises InvalidInput that names the choices."""
    targets = {row.slug: row for row in Target.objects.active()}
    chosen = targets[_one_of("target", target or DEFAULT_TARGET, tuple(sorted(targets)))]
    known = backends_of(chosen.spec)
    return Choice(
        target=chosen,
        variant=_one_of("variant", variant or VARIANTS[0], VARIANTS),
        backends=(_one_of("backend", backend, known),) if backend else known,
        dtype=_one_of("dtype", dtype or next(iter(DTYPES)), tuple(DTYPES)),
    )


def _one_of(field: str, value: str, choices: tuple[str, ...]) -> str:
    if value in choices:
        return value
    raise InvalidInput(
        f"{field}.unknown",
        f"Unknown {field} {value[:40]!r}; choose one of: {', '.join(choices)}.",
        field=field,
        status=400,
        choices=list(choices),
    )


def archive(choice: Choice, problems: Iterable[Problem]) -> bytes:
    """Return a zip of manifest.json and NUMBER_SLUG_BACKEND.txt for every problem and backend chosen.

    Equal prompts make equal bytes: fixed times and modes, stored, since compressed bytes differ by zlib.
    """
    texts: dict[str, str] = {}
    listed = []
    for problem in problems:
        for backend in choice.backends:
            prompt = choice.prompt(problem, backend)
            name = f"{problem.number}_{problem.slug}_{backend}.txt"
            texts[name] = prompt.text
            track = problem.spec.get("track", DEFAULT_TRACK)
            facts = {"number": problem.number, "problem": problem.slug, "track": track}
            listed.append({"file": name, **facts, "backend": backend, "sha256": prompt.sha256})
    chosen = {"target": choice.target.slug, "variant": choice.variant, "dtype": choice.dtype}
    manifest = json.dumps({"schema": 1, **chosen, "prompts": listed}, indent=1) + "\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as bundle:
        for name, text in {"manifest.json": manifest, **texts}.items():
            entry = zipfile.ZipInfo(name, _THEN)
            entry.create_system = 3  # whatever wrote it
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, text.encode())
    return packed.getvalue()

"""Reads that pages and API share."""

from dataclasses import dataclass

from problems.models import Problem, Target
from problems.prompts import VARIANTS, Prompt, build_prompt

DEFAULT_TARGET = "h100x4"


@dataclass(frozen=True)
class Facets:
    """The values that the problem list can be filtered by."""

    levels: list[int]
    domains: list[str]
    parallelism: list[str]
    collectives: list[str]
    bounds: list[str]


def facets() -> Facets:
    """Return the values in use, sorted."""
    rows = list(Problem.objects.active().values("level", "domain", "parallelism", "collectives", "bound"))
    return Facets(
        levels=sorted({row["level"] for row in rows}),
        domains=sorted({row["domain"] for row in rows}),
        parallelism=sorted({item for row in rows for item in row["parallelism"]}),
        collectives=sorted({item for row in rows for item in row["collectives"]}),
        bounds=sorted({row["bound"] for row in rows if row["bound"]}),
    )


def prompt_of(problem: Problem, *, target: str = "", variant: str = VARIANTS[0]) -> Prompt | None:
    """Return the prompt, None when the target or the variant is unknown."""
    chosen = Target.objects.active().filter(slug=target or DEFAULT_TARGET).first()
    if chosen is None or variant not in VARIANTS:
        return None
    hardware = {
        "title": chosen.title,
        "ranks": chosen.ranks,
        "backend": chosen.backend,
        "device": chosen.spec.get("device", ""),
        "cells": chosen.cells,
    }
    return build_prompt(
        slug=problem.slug,
        title=problem.title,
        spec=problem.spec,
        target=chosen.slug,
        hardware=hardware,
        variant=variant,
    )

"""Mirror the catalogue on disk into the database. Run by `manage.py sync_catalog`, never by a web process:
the catalogue's own code imports torch."""

import tomllib
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction

from problems import models, registry, roofline
from problems.tolerance import Tolerance


@dataclass(frozen=True)
class Synced:
    """What a sync did, by slug."""

    problems: tuple[str, ...]
    targets: tuple[str, ...]
    retired: tuple[str, ...]


@transaction.atomic
def sync_catalog() -> Synced:
    """Write every problem and target of the catalogue; what left the catalogue is retired, not deleted."""
    targets = registry.all_targets()
    problems = registry.all_problems()
    for target in targets:
        models.Target.objects.update_or_create(slug=target.slug, defaults=target_fields(target))
    for problem in problems:
        models.Problem.objects.update_or_create(slug=problem.slug, defaults=problem_fields(problem, targets))
    gone_problems = models.Problem.objects.active().exclude(slug__in=[p.slug for p in problems])
    gone_targets = models.Target.objects.active().exclude(slug__in=[t.slug for t in targets])
    retired = (*gone_problems.values_list("slug", flat=True), *gone_targets.values_list("slug", flat=True))
    gone_problems.update(active=False)
    gone_targets.update(active=False)
    return Synced(tuple(p.slug for p in problems), tuple(t.slug for t in targets), retired)


def target_fields(target: registry.Target) -> dict[str, Any]:
    """Return the columns of a target."""
    data = target.data
    return {
        "title": target.title,
        "ranks": target.ranks,
        "backend": target.backend,
        "cells": list(target.cells),
        "ranked": target.ranked,
        "active": True,
        "spec": {
            "device": target.device,
            "official": bool(data.get("official", False)),
            "timed": target.timed,
            "note": data.get("note", ""),
            "arch": data.get("arch", ""),
            "threads_per_rank": target.threads_per_rank,
            "limits": target.limits,
            "peaks_tflops": dict(target.hardware.peaks),
            "memory_gbs": target.hardware.memory_gbs,
            "link_gbs": target.hardware.link_gbs,
            "in_network_reduction": target.hardware.in_network_reduction,
        },
    }


def problem_fields(problem: registry.Problem, targets: list[registry.Target]) -> dict[str, Any]:
    """Return the columns of a problem, its public declaration as `spec`."""
    return {
        "number": problem.number,
        "title": problem.title,
        "level": problem.level,
        "domain": problem.domain,
        "parallelism": problem.parallelism,
        "collectives": problem.collectives,
        "bound": problem.bound,
        "summary": problem.summary,
        "score_revision": problem.score_revision,
        "roofline_revision": problem.roofline_revision,
        "active": True,
        "spec": {
            "track": problem.track,
            "signature": problem.signature,
            "semantics": problem.semantics,
            "oddities": problem.oddities,
            "world_sizes": problem.world_sizes,
            "sizes": problem.sizes,
            "symbols": dict(problem.data.get("symbols", {})),
            "arguments": [_argument(a) for a in problem.arguments],
            "outputs": [_output(o) for o in problem.outputs],
            "phases": [_phase(p) for p in problem.phases],
            "floor": dict(problem.data["floor"]),
            "roofline": {t.slug: _roofline(problem, t) for t in targets if t.timed},
            "samples": _samples(problem.slug),
            "reference": (problem.folder / "reference.py").read_text(),
        },
    }


def _samples(slug: str) -> list[dict[str, str]]:
    """Return the bundled samples of a problem with their source and the verdict they are meant to get."""
    folder = registry.CATALOG.parent / "samples"
    listed = tomllib.loads((folder / "samples.toml").read_text())["samples"]
    return [
        {
            **{key: row[key] for key in ("file", "verdict", "about")},
            "target": row.get("target", "cpu4"),
            "source": (folder / row["file"]).read_text(),
        }
        for row in listed
        if row["problem"] == slug and row["file"].endswith(".py")
    ]


def _argument(argument: registry.Argument) -> dict[str, Any]:
    """Return an argument's declaration; `tolerance` only where the change in place is compared."""
    rules = {"tolerance": _tolerance(argument.tolerance[0][1])} if argument.tolerance else {}
    return {
        **rules,
        "name": argument.name,
        "kind": argument.kind,
        "role": argument.role,
        "shape": argument.shape,
        "dtype": argument.dtype,
        "description": argument.description,
    }


def _output(output: registry.Output) -> dict[str, Any]:
    return {
        "name": output.name,
        "shape": output.shape,
        "dtype": output.dtype,
        "ranks": output.ranks,
        "description": output.description,
        "checked_by": output.checked_by,
        "may_alias": list(output.may_alias),
        "tolerance": _tolerance(output.tolerance),
    }


def _tolerance(tolerance: Tolerance) -> dict[str, Any]:
    """Return what differs from an exact comparison."""
    usual = {**asdict(Tolerance()), "exact": tolerance.exact}  # exact is what an empty table means
    return {key: value for key, value in asdict(tolerance).items() if value != usual[key]}


def _phase(phase: roofline.Phase) -> dict[str, Any]:
    return {
        "name": phase.name,
        "flops": phase.flops,
        "path": phase.path,
        "memory_bytes": phase.memory_bytes,
        "comm": [dict(item) for item in phase.comm],
        "note": phase.note,
    }


def _roofline(problem: registry.Problem, target: registry.Target) -> dict[str, Any]:
    """Return size -> least times in microseconds on a target, with each phase's limiter.

    `other_form` has the same for a switch that is not the target's: without in-network reduction where the
    target has it, with it where not; None where that changes nothing. `floor_us` is the strict floor, None
    on a CPU target.
    """
    turned = not target.hardware.in_network_reduction
    other = replace(target.hardware, in_network_reduction=turned)
    found = {}
    for size in problem.sizes:
        times = problem.times(size, target)
        others = roofline.phase_times(problem.phases, problem.symbols(size, target.ranks), other)
        least = problem.floor(size, target)
        found[size] = {
            **_times(times),
            "other_form": _times(others) if others != times else None,
            "floor_us": None if least is None else least * 1e6,
        }
    return found


def _times(times: list[roofline.PhaseTime]) -> dict[str, Any]:
    return {
        "t_roof_us": roofline.roof_seconds(times) * 1e6,
        "bound": roofline.bound_of(times),
        "phases": [
            {
                "name": time.name,
                "compute_us": time.compute * 1e6,
                "memory_us": time.memory * 1e6,
                "link_us": time.link * 1e6,
                "us": time.seconds * 1e6,
                "bound": time.bound,
            }
            for time in times
        ],
    }

"""The catalogue on disk: problems and targets, read and checked, free of Django.

A problem is a folder `catalog/NN_slug/` with `problem.toml` (facts), `reference.py` (the baseline),
`golden.py` (the truth), `inputs.py` (values), and where needed `factories.py` (objects built on the
rank). A target is `targets/NAME.toml`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from problems import names, roofline
from problems.tolerance import Tolerance

CATALOG = Path(__file__).parent / "catalog"
TARGETS = Path(__file__).parent / "targets"
DEFAULT_TRACK = "pkb87"
ROLES = ("dynamic", "inout", "scratch", "static")
_HELPER = re.compile(r"^from problems import (\w+)$", re.MULTILINE)


class CatalogError(ValueError):
    """A problem or target file is wrong; the message names the file and what to change."""


class UnknownProblem(KeyError):
    """No problem (or target) of that name."""


@dataclass(frozen=True)
class Argument:
    """One positional argument of `solution`, as people and the judge see it."""

    name: str
    kind: str
    role: str
    shape: str
    dtype: str
    description: str
    tolerance: tuple[tuple[str, Tolerance], ...] = ()


LOOSE = 0.02
"""Of an output's rms: eight bits a value, with a scale for every block, err by less in a sum of four ranks."""


@dataclass(frozen=True)
class Output:
    """One declared output: `at` is a pattern over the paths of the returned tree ("" = itself)."""

    name: str
    at: str
    shape: str
    dtype: str
    ranks: str
    tolerance: Tolerance
    may_alias: tuple[str, ...] = ()
    checked_by: str = "value"
    description: str = ""


@dataclass(frozen=True)
class Problem:
    """One problem of the catalogue."""

    folder: Path
    data: Mapping[str, Any] = field(repr=False)

    @property
    def slug(self) -> str:
        return str(self.data["slug"])

    @property
    def number(self) -> int:
        return int(self.data["number"])

    @property
    def title(self) -> str:
        return str(self.data["title"])

    @property
    def track(self) -> str:
        """Which list of problems this one counts for: `pkb87` (the published 87) or another name."""
        return str(self.data.get("track", DEFAULT_TRACK))

    @property
    def level(self) -> int:
        return int(self.data["level"])

    @property
    def domain(self) -> str:
        return str(self.data["domain"])

    @property
    def parallelism(self) -> list[str]:
        return list(self.data["parallelism"])

    @property
    def collectives(self) -> list[str]:
        return list(self.data["collectives"])

    @property
    def summary(self) -> str:
        return str(self.data["summary"]).strip()

    @property
    def semantics(self) -> str:
        return str(self.data["semantics"]).strip()

    @property
    def signature(self) -> str:
        return str(self.data["signature"]).strip()

    @property
    def world_sizes(self) -> list[int]:
        return list(self.data.get("world_sizes", [2, 4, 8]))

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        return {name: dict(values) for name, values in self.data["sizes"].items()}

    @property
    def oddities(self) -> list[str]:
        """Semantics that are kept although they look odd; said on the problem's page."""
        return list(self.data.get("oddities", []))

    @property
    def waivers(self) -> dict[str, str]:
        """Mutants that may pass the mutation gate, each with the reason."""
        return dict(self.data.get("waivers", {}))

    @cached_property
    def arguments(self) -> list[Argument]:
        found = []
        for index, raw in enumerate(self.data["arguments"]):
            where = f"{self.folder.name}: arguments[{index}]"
            role = raw.get("role", "dynamic")
            if role not in ROLES:
                raise CatalogError(f"{where}: role {role!r} is none of {ROLES}")
            rules: tuple[tuple[str, Tolerance], ...] = ()
            if role == "inout":
                if "tolerance" not in raw:
                    raise CatalogError(f"{where}: an inout argument needs a tolerance")
                rules = (("*", Tolerance.parse(raw["tolerance"], where)),)
            found.append(
                Argument(
                    name=raw["name"],
                    kind=raw["kind"],
                    role=role,
                    shape=raw.get("shape", ""),
                    dtype=raw.get("dtype", ""),
                    description=raw.get("description", ""),
                    tolerance=rules,
                )
            )
        return found

    @cached_property
    def outputs(self) -> list[Output]:
        declared = self.data["outputs"]
        found = []
        for index, raw in enumerate(declared):
            where = f"{self.folder.name}: outputs[{index}]"
            default_at = "*" if len(declared) == 1 else str(index)
            found.append(
                Output(
                    name=raw["name"],
                    at=raw.get("at", default_at),
                    shape=raw.get("shape", ""),
                    dtype=raw.get("dtype", ""),
                    ranks=raw.get("ranks", ""),
                    tolerance=Tolerance.parse(raw.get("tolerance", {}), where),
                    may_alias=tuple(raw.get("may_alias", ())),
                    checked_by=raw.get("checked_by", "value"),
                    description=raw.get("description", ""),
                )
            )
        return found

    def may_alias(self, path: str) -> tuple[str, ...]:
        """Names of the arguments whose memory the output at `path` may be."""
        return next((o.may_alias for o in self.outputs if fnmatchcase(path, o.at)), ())

    @property
    def output_rules(self) -> list[tuple[str, Tolerance]]:
        """(path pattern, tolerance) for the returned tree, in order of declaration."""
        return [(output.at, output.tolerance) for output in self.outputs]

    def inout_rules(self, name: str) -> list[tuple[str, Tolerance]]:
        """(path pattern, tolerance) for one inout argument."""
        return next(list(a.tolerance) for a in self.arguments if a.name == name)

    @cached_property
    def phases(self) -> list[roofline.Phase]:
        return [
            roofline.Phase(
                name=raw["name"],
                flops=str(raw.get("flops", 0)),
                path=raw.get("path", "fp32"),
                memory_bytes=str(raw.get("memory_bytes", 0)),
                comm=tuple(raw.get("comm", ())),
                note=raw.get("note", ""),
            )
            for raw in self.data["phases"]
        ]

    def symbols(self, size: str, world_size: int) -> dict[str, float]:
        """The names that phase expressions may use: W, the size's values, e = 2, derived symbols."""
        names: dict[str, float] = {"W": world_size, "e": 2, **self.size(size)}
        for name, expression in self.data.get("symbols", {}).items():
            names[name] = roofline.evaluate(expression, names)
        return names

    def size(self, name: str) -> dict[str, int]:
        if name not in self.sizes:
            raise UnknownProblem(f"{self.slug} has no size {name!r}; it has {list(self.sizes)}")
        return self.sizes[name]

    def times(self, size: str, target: Target) -> list[roofline.PhaseTime]:
        """Roofline times of the phases on a target, in seconds."""
        return roofline.phase_times(self.phases, self.symbols(size, target.ranks), target.hardware)

    def floor(self, size: str, target: Target) -> float | None:
        """Seconds for the bytes that any correct algorithm must move; None where the figures are nominal (a CPU).

        Unlike the roofline this holds whatever the algorithm: a time below it was not measured right. Where all outputs
        may err by a few hundredths of their rms, half of the bits are enough on the wire.
        """
        if not target.has_floor:
            return None
        symbols, hardware = self.symbols(size, target.ranks), target.hardware
        wire = roofline.evaluate(self.data["floor"].get("wire_bytes", 0), symbols) / (hardware.link_gbs * 1e9)
        if all(output.tolerance.atol_rms >= LOOSE for output in self.outputs):
            wire /= 2
        memory = roofline.evaluate(self.data["floor"].get("memory_bytes", 0), symbols)
        return max(wire, memory / (hardware.memory_gbs * 1e9))

    def touched_bytes(self, size: str, world_size: int) -> float:
        """Bytes that all ranks together read and write in the largest phase: about what a job holds at least."""
        symbols = self.symbols(size, world_size)
        return world_size * max(roofline.evaluate(phase.memory_bytes, symbols) for phase in self.phases)

    @cached_property
    def bound(self) -> str:
        """compute, memory or nvlink: what bounds the default size on the official target."""
        return roofline.bound_of(self.times("default", load_target(OFFICIAL_TARGET)))

    @cached_property
    def score_revision(self) -> str:
        """Changes when anything changes that a score depends on."""
        digest = hashlib.sha256()
        for name in ("reference.py", "golden.py", "inputs.py", "factories.py"):
            path = self.folder / name
            content = path.read_bytes() if path.exists() else b"-"
            digest.update(content)
            for module in _HELPER.findall(content.decode()):  # routing, trainstep: part of the problem
                digest.update((CATALOG.parent / f"{module}.py").read_bytes())
        keys = ("arguments", "outputs", "sizes", "world_sizes", "signature")
        facts = {key: _without_prose(self.data.get(key)) for key in keys}
        digest.update(json.dumps(facts, sort_keys=True).encode())
        return digest.hexdigest()[:12]

    @cached_property
    def roofline_revision(self) -> str:
        """Changes when the phases or the floor do; utilisation is then recomputed."""
        keys = ("phases", "floor", "symbols", "sizes")
        facts = {key: _without_prose(self.data.get(key)) for key in keys}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]

    def module(self, name: str) -> ModuleType:
        """`reference`, `golden`, `inputs` or `factories` of this problem (trusted code)."""
        return _module(self.folder / f"{name}.py")

    def namespace(self, size: str) -> SimpleNamespace:
        """The size's values as attributes, as `inputs.py` and `golden.py` take them."""
        return SimpleNamespace(**self.size(size))

    def groups(self, world_size: int) -> list[tuple[int, ...]]:
        """Process groups to create at start, in one order on every rank, beside WORLD."""
        inputs = self.module("inputs")
        return list(inputs.groups(world_size)) if hasattr(inputs, "groups") else []


@dataclass(frozen=True)
class Target:
    """Hardware a score is comparable on."""

    slug: str
    title: str
    ranks: int
    backend: str
    device: str
    ranked: bool
    cells: list[str]
    hardware: roofline.Hardware
    data: Mapping[str, Any] = field(repr=False)

    @property
    def threads_per_rank(self) -> int:
        return int(self.data.get("threads_per_rank", 1))

    @property
    def cards(self) -> list[int] | None:
        """Index of each rank's card; None for a CPU target."""
        if self.device == "cpu":
            return None
        return list(self.data.get("device_of_rank", range(self.ranks)))

    @property
    def timed(self) -> bool:
        """Whether times mean anything here (four ranks on one card: no)."""
        return bool(self.data.get("timing", True))

    @property
    def has_floor(self) -> bool:
        """Whether the speed of the links is a fact that no file can beat (nominal figures of a CPU are not)."""
        return bool(self.data.get("floor", self.device != "cpu"))

    def too_large(self, problem: Problem, size: str) -> str | None:
        """Why a size does not fit this target, in words; None when it may."""
        need, limit = problem.touched_bytes(size, self.ranks), self.limits["memory_bytes"]
        if need <= limit:
            return None
        fitting = [name for name in problem.sizes if problem.touched_bytes(name, self.ranks) <= limit]
        return (
            f"size {size} of {problem.slug} does not fit {self.slug}: its {self.ranks} ranks would touch about "
            f"{need / 2**30:.1f} GiB in one phase, and a job may hold {limit / 2**30:.1f} GiB. "
            f"Sizes that fit: {', '.join(fitting)}."
        )

    @property
    def env(self) -> dict[str, str]:
        """Extra environment of every rank."""
        return dict(self.data.get("env", {}))

    @property
    def limits(self) -> dict[str, int]:
        """memory_bytes, pids, tmp_bytes, shm_bytes of one job."""
        return {key: int(value) for key, value in self.data["limits"].items()}


OFFICIAL_TARGET = "h100x4"


def _without_prose(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_prose(item) for item in value]
    if isinstance(value, dict):
        skip = ("description", "note", "ranks")
        return {key: _without_prose(item) for key, item in value.items() if key not in skip}
    return value


@cache
def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"pkb_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise CatalogError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REQUIRED = (
    "slug number title level domain parallelism collectives summary semantics signature arguments "
    "outputs sizes phases floor"
).split()


def _read(folder: Path) -> Problem:
    path = folder / "problem.toml"
    try:
        data = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{path}: {error}") from error
    missing = [key for key in REQUIRED if key not in data]
    if missing:
        raise CatalogError(f"{path}: missing {missing}")
    if folder.name != f"{data['number']:02d}_{data['slug']}":
        raise CatalogError(f"{path}: the folder must be named {data['number']:02d}_{data['slug']}")
    if "tiny" not in data["sizes"] or "default" not in data["sizes"]:
        raise CatalogError(f"{path}: sizes tiny and default are required")
    for name in ("reference.py", "golden.py", "inputs.py"):
        if not (folder / name).exists():
            raise CatalogError(f"{folder}: {name} is missing")
    return Problem(folder=folder, data=data)


@cache
def _catalog() -> dict[str, Problem]:
    found = [_read(path.parent) for path in sorted(CATALOG.glob("*/problem.toml"))]
    return {problem.slug: problem for problem in sorted(found, key=lambda p: p.number)}


def all_problems(track: str | None = None) -> list[Problem]:
    """Every problem (of one track, if named), by number."""
    return [p for p in _catalog().values() if track is None or p.track == track]


def load_problem(name: str) -> Problem:
    """By slug, or by number as text. Raises UnknownProblem with near names."""
    catalog = _catalog()
    if name in catalog:
        return catalog[name]
    for problem in catalog.values():
        if name.isdecimal() and int(name) == problem.number:
            return problem
    near = names.near(name, catalog)
    raise UnknownProblem(f"no problem {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))


@cache
def load_target(name: str) -> Target:
    """By slug. Raises UnknownProblem naming the targets there are."""
    path = TARGETS / f"{name}.toml"
    if "/" in name or not path.exists():
        near = names.near(name, target_names())
        hint = f"; did you mean {' or '.join(near)}?" if near else ";"
        raise UnknownProblem(f"no target {name!r}{hint} Targets: {', '.join(target_names())}.")
    data = tomllib.loads(path.read_text())
    hardware = roofline.Hardware(
        peaks=data["peaks_tflops"],
        memory_gbs=data["memory_gbs"],
        link_gbs=data["link_gbs"],
        in_network_reduction=data["in_network_reduction"],
    )
    return Target(
        slug=name,
        title=data["title"],
        ranks=data["ranks"],
        backend=data["backend"],
        device=data["device"],
        ranked=data["ranked"],
        cells=data["cells"],
        hardware=hardware,
        data=data,
    )


def target_names() -> list[str]:
    return sorted(path.stem for path in TARGETS.glob("*.toml"))


def all_targets() -> list[Target]:
    return [load_target(name) for name in target_names()]

"""The roofline over the catalogue: against the specification, with and without in-network reduction."""

import dataclasses
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from problems import registry, roofline

SPEC: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "spec_bounds.toml").read_text())
OFFICIAL = registry.load_target(registry.OFFICIAL_TARGET)
EVERY = registry.all_problems()

# Where our least time is not the specification's, and why. The bound is the same even there.
DEVIATES: dict[str, tuple[float, str]] = {
    "gsplat_3d_gaussian_splatting": (
        0.1436,
        "the specification takes every Gaussian to be visible to every camera; in the hardened inputs "
        "three in eight pairs are, and only visible pairs travel",
    ),
    "gnn_neighbor_sampling": (
        0.6273,
        "the specification's graph yields 10 new nodes after the first hop; the hardened graph is random, so "
        "the later hops ask for most of what they touch",
    ),
}


def times(problem: registry.Problem, size: str, reduction: bool) -> list[roofline.PhaseTime]:
    hardware = dataclasses.replace(OFFICIAL.hardware, in_network_reduction=reduction)
    return roofline.phase_times(problem.phases, problem.symbols(size, OFFICIAL.ranks), hardware)


def test_the_specification_covers_the_87() -> None:
    assert {p.slug: p.number for p in registry.all_problems(registry.DEFAULT_TRACK)} == {
        slug: row["number"] for slug, row in SPEC.items()
    }
    assert sorted(row["number"] for row in SPEC.values()) == list(range(1, 88))


@pytest.mark.parametrize("problem", EVERY, ids=lambda p: p.slug)
def test_in_network_reduction_never_costs_time(problem: registry.Problem) -> None:
    for size in problem.sizes:
        switched, plain = times(problem, size, True), times(problem, size, False)
        for ours, theirs in zip(switched, plain, strict=True):
            assert ours.link <= theirs.link, (size, ours.name)
        assert 0 < roofline.roof_seconds(switched) <= roofline.roof_seconds(plain), size


def test_in_network_reduction_helps_sums_only() -> None:
    """The gain is 2(W-1)/W on the link of an all-reduce, and nothing where no sum crosses the switch."""
    for slug, gain in (("allreduce", 1.5), ("allgather", 1.0), ("alltoall", 1.0)):
        problem = registry.load_problem(slug)
        plain, switched = times(problem, "default", False)[0], times(problem, "default", True)[0]
        assert plain.link / switched.link == pytest.approx(gain), slug


@pytest.mark.parametrize("slug", SPEC)
def test_bound_and_least_time_are_the_specifications(slug: str) -> None:
    problem = registry.load_problem(slug)
    assert OFFICIAL.hardware.in_network_reduction  # as the specification assumes
    assert problem.bound == SPEC[slug]["bound"]
    wanted = DEVIATES[slug][0] if slug in DEVIATES else SPEC[slug]["t_roof_us"]
    ours = roofline.roof_seconds(problem.times("default", OFFICIAL)) * 1e6
    assert ours == pytest.approx(wanted, rel=2e-3)


def test_a_listed_deviation_is_one() -> None:
    for slug, (ours, reason) in DEVIATES.items():
        assert ours != pytest.approx(SPEC[slug]["t_roof_us"], rel=2e-3), slug
        assert reason


def test_shares_over_the_87(record_property: Any) -> None:
    """64 link, 16 memory, 7 compute; the paper's shares (75, 18 and 7 %) within two points."""
    bounds = Counter(problem.bound for problem in registry.all_problems(registry.DEFAULT_TRACK))
    record_property("bounds", dict(bounds))
    assert bounds == {"nvlink": 64, "memory": 16, "compute": 7}
    shares = {name: 100 * count / 87 for name, count in bounds.items()}
    assert shares == pytest.approx({"nvlink": 75, "memory": 18, "compute": 7}, abs=2)


@pytest.mark.parametrize("problem", EVERY, ids=lambda p: p.slug)
def test_the_strict_floor_lies_below_every_phase_account(problem: registry.Problem) -> None:
    """A floor above what the phases move would reject honest files; it never counts on a CPU."""
    assert set(problem.data["floor"]) <= {"wire_bytes", "memory_bytes"}
    assert problem.floor("default", registry.load_target("cpu4")) is None
    for ranks in problem.world_sizes:
        target = dataclasses.replace(OFFICIAL, ranks=ranks)
        for size in problem.sizes:
            phases = problem.times(size, target)
            symbols = problem.symbols(size, ranks)
            least = {
                name: roofline.evaluate(problem.data["floor"].get(f"{name}_bytes", 0), symbols)
                for name in ("wire", "memory")
            }
            link = sum(phase.link for phase in phases) * target.hardware.link_gbs * 1e9
            memory = sum(phase.memory for phase in phases) * target.hardware.memory_gbs * 1e9
            assert least["wire"] <= link * (1 + 1e-9), (ranks, size)
            assert least["memory"] <= memory * (1 + 1e-9), (ranks, size)
            floor = problem.floor(size, target)
            assert floor is not None
            assert 0 < floor <= roofline.roof_seconds(phases) * (1 + 1e-9), (ranks, size)


@pytest.mark.parametrize(("slug", "bytes_of_an_element"), [("allreduce", 1), ("allgather", 3 * 2)])
def test_what_passes_with_half_of_the_bits_is_not_impossible(slug: str, bytes_of_an_element: int) -> None:
    """Eight bits for a bfloat16 sum pass its tolerance, so that no time they allow may be called impossible."""
    problem = registry.load_problem(slug)
    elements = 1024 * 1024
    floor = problem.floor("default", OFFICIAL)
    assert floor == pytest.approx(elements * bytes_of_an_element / (OFFICIAL.hardware.link_gbs * 1e9))

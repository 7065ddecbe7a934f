"""Pages of the catalogue."""

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from problems import selectors
from problems.filters import ProblemFilter
from problems.highlight import render as render_code
from problems.models import Problem, Target
from problems.prompt_selectors import DEFAULT_TARGET, Choice
from problems.prompts import VARIANTS, Prompt, backends_of

PAGE = 100


def problem_list(request: HttpRequest) -> HttpResponse:
    """Browse: filters and search narrow on the server."""
    found = ProblemFilter(request.GET, queryset=Problem.objects.active().for_lists())
    rows = found.qs if found.is_valid() else Problem.objects.none()
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    facets = selectors.facets()
    context = {
        "page": page,
        "facets": facets,
        "total": facets.total,
        "values": {name: request.GET.get(name, "") for name in ProblemFilter.base_filters},
        "filtered": any(request.GET.get(name) for name in ProblemFilter.base_filters),
    }
    return render(request, "problems/list.html", context)


def problem_map(request: HttpRequest) -> HttpResponse:
    """The catalogue as a table of parallelism by level; each count leads to its problems."""
    return render(request, "problems/map.html", {"map": selectors.taxonomy_map()})


def problem_context(slug: str) -> dict[str, Any]:
    """Return what the problem page shows of the catalogue. Raises Http404."""
    problem = Problem.objects.active().filter(slug=slug).first()
    if problem is None:
        raise Http404
    targets = list(Target.objects.active())
    return {
        "problem": problem,
        "spec": problem.spec,
        "reference": render_code(problem.spec.get("reference", "")),
        "signature": render_code(problem.spec.get("signature", "")),
        "samples": [
            {**sample, "code": render_code(sample["source"])} for sample in problem.spec.get("samples", [])
        ],
        "prompts": _prompts(problem, targets),
        "targets": targets,
        "roofs": _roofs(problem, targets),
    }


def _prompts(problem: Problem, targets: list[Target]) -> list[Prompt]:
    """Return the prompts for the official target, or the first there is: every variant in every backend."""
    target = next((t for t in targets if t.slug == DEFAULT_TARGET), targets[0] if targets else None)
    if target is None:
        return []
    return [
        Choice(target, variant, backends_of(target.spec), "bf16").prompt(problem, backend)
        for variant in VARIANTS
        for backend in backends_of(target.spec)
    ]


def _roofs(problem: Problem, targets: list[Target]) -> list[dict[str, Any]]:
    """Return one row per target and size: the least time, what bounds it, and both forms of the switch.

    `forms` is [(with in-network reduction, times)], the target's own first, one only where they are equal.
    """
    table = problem.spec.get("roofline", {})
    rows = []
    for target in sorted(targets, key=lambda t: (not t.spec.get("official"), t.slug)):
        reduction = bool(target.spec.get("in_network_reduction"))
        for size, row in table.get(target.slug, {}).items():
            if size in target.cells:
                other = row.get("other_form")
                forms = [(reduction, row)] + ([(not reduction, other)] if other else [])
                rows.append({"target": target, "size": size, "forms": forms, **row})
    return rows

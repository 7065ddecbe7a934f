"""Pages of the catalogue."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from portal.core import query
from portal.core.errors import NotFound
from problems import selectors, solved
from problems.filters import ProblemFilter
from problems.highlight import render as render_code
from problems.models import Problem, Target
from problems.prompt_facts import comparison
from problems.prompt_selectors import DEFAULT_TARGET, Choice
from problems.prompts import VARIANTS, Prompt, backends_of, derived_symbols
from problems.prose import blocks
from problems.starter import name_of, text_of

PAGE = 100


@query.takes(*ProblemFilter.base_filters, "page")
def problem_list(request: HttpRequest) -> HttpResponse:
    """Browse: filters and search narrow on the server."""
    found = ProblemFilter(request.GET, queryset=Problem.objects.active().for_lists())
    query.demand_valid(found.form, request.GET)
    page = query.page_of(found.qs, PAGE, request.GET)
    facets = selectors.facets()
    context = {
        "page": page,
        "leaders": solved.leaders(),
        "own": solved.own(request.user),
        "facets": facets,
        "total": facets.total,
        "values": {name: request.GET.get(name, "") for name in ProblemFilter.base_filters},
        "filtered": any(request.GET.get(name) for name in ProblemFilter.base_filters),
    }
    return render(request, "problems/list.html", context)


def problem_map(request: HttpRequest) -> HttpResponse:
    """The catalogue as a table of parallelism by level; each count leads to its problems."""
    return render(request, "problems/map.html", {"map": selectors.taxonomy_map()})


def starter(request: HttpRequest, slug: str) -> HttpResponse:
    """Download a file to start from."""
    problem = _active(slug)
    text = text_of(problem.number, problem.title, problem.spec)
    answer = HttpResponse(text, content_type="text/x-python; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name_of(problem.number, problem.slug)}"'
    return answer


def problem_context(slug: str) -> dict[str, Any]:
    """Return what the problem page shows of the catalogue. Raises NotFound with near names."""
    problem = _active(slug)
    targets = sorted(Target.objects.active(), key=lambda t: (not t.spec.get("official"), t.slug))
    prompts = _prompts(problem, targets)
    return {
        "problem": problem,
        "starter": name_of(problem.number, problem.slug),
        "spec": problem.spec,
        "semantics": blocks(problem.spec.get("semantics", "")),
        "arguments": [_compared(item) for item in problem.spec.get("arguments", [])],
        "outputs": [_compared(item) for item in problem.spec.get("outputs", [])],
        "derived": derived_symbols(problem.spec),
        "reference": render_code(problem.spec.get("reference", "")),
        "signature": render_code(problem.spec.get("signature", "")),
        "samples": [
            {**sample, "code": render_code(sample["source"])} for sample in problem.spec.get("samples", [])
        ],
        "prompts": prompts,
        "other_prompts": [
            (target, [(variant, b) for variant in VARIANTS for b in backends_of(target.spec)])
            for target in targets
            if not prompts or target.slug != prompts[0].target
        ],
        "targets": targets,
        "roofs": _roofs(problem, targets),
    }


def _active(slug: str) -> Problem:
    problem = Problem.objects.active().filter(slug=slug).first()
    if problem is None:
        raise NotFound("problem.not_found", selectors.unknown_problem(slug, reverse("problems:list")))
    return problem


def _compared(item: dict[str, Any]) -> dict[str, Any]:
    """Return an argument or output with `compared`: how it is compared, in a sentence ("" where it is not)."""
    return {**item, "compared": comparison(item) if "tolerance" in item else ""}


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
    """Return one row per target (in their order) and size: least time, bound, and both forms of the switch.

    `forms` is [(with in-network reduction, times)], the target's own first, one only where they are equal. A target
    that measures no times (four ranks on one card) has no row of forms: its peaks are not those of its ranks.
    """
    table = problem.spec.get("roofline", {})
    rows: list[dict[str, Any]] = []
    for target in targets:
        if not target.spec.get("timed", True):
            rows += [{"target": target, "size": size, "forms": []} for size in target.cells]
            continue
        reduction = bool(target.spec.get("in_network_reduction"))
        for size, row in table.get(target.slug, {}).items():
            if size in target.cells:
                other = row.get("other_form")
                forms = [(reduction, row)] + ([(not reduction, other)] if other else [])
                rows.append({"target": target, "size": size, "forms": forms, **row})
    return rows

"""Query parameters: of a name that is not known, or with a value that cannot be meant, 400 by name.

A view of a page says with `takes` which names there are, one of the API with its class; every other name is
refused. What is left out or empty counts as not given. Pages and API alike read their parameters through here,
so that nothing odd is taken for "everything" or "the usual" without a word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.paginator import Page, Paginator

from portal.core.errors import InvalidInput

if TYPE_CHECKING:
    from django.http import QueryDict

MOST_NAMED = 20
_OF_OTHERS = re.compile(r"utm_\w{1,40}|fbclid|gclid|msclkid")
"""What other sites add to a link that they show: it asks for nothing, and the link should lead somewhere."""

View = TypeVar("View", bound=Callable[..., Any])
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def refuse(name: str, code: str, message: str, **extra: object) -> InvalidInput:
    """Return the 400 about one query parameter."""
    return InvalidInput(f"{name}.{code}", message, field=name, status=400, **extra)


def none_of(value: str, choices: Iterable[str]) -> str:
    """Say that a value is none of the choices, naming them."""
    names = [choice for choice in choices if choice]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    told = ", ".join(names[:MOST_NAMED]) or "(there are none yet)"
    return f"{value[:40]!r} is none of: {told}{more}."


def given(params: QueryDict, name: str) -> str:
    """Return a parameter's value, empty when it is not there; 400 when it is there twice with two values."""
    values = params.getlist(name)
    if len(set(values)) > 1:
        raise refuse(name, "repeated", f"Give `{name}` once; it is there {len(values)} times.")
    return values[0] if values else ""


def choice(params: QueryDict, name: str, choices: Iterable[str], default: str = "") -> str:
    """Return a parameter that must be one of the choices, else `default`; 400 lists them."""
    known = list(choices)
    value = given(params, name)
    if value and value not in known:
        raise refuse(name, "unknown", f"{name}: {none_of(value, known)}", choices=known)
    return value or default


def several(params: QueryDict, name: str, choices: Iterable[str]) -> list[str]:
    """Return the values of a parameter that may be there more than once, each one of the choices, once each."""
    known = list(choices)
    values = list(dict.fromkeys(value for value in params.getlist(name) if value))
    for value in values:
        if value not in known:
            raise refuse(name, "unknown", f"{name}: {none_of(value, known)}", choices=known)
    return values


def only(params: QueryDict, names: Iterable[str]) -> None:
    """Refuse a parameter of a name that is none of these."""
    known = list(names)
    for name in params:
        if name not in known and not _OF_OTHERS.fullmatch(name):
            told = none_of(name, known) if known else "nothing can be asked for here."
            # The name is the caller's text: it stands in `field`, not in the code.
            raise InvalidInput(
                "query.unknown_parameter", f"`{name[:60]}`: {told}", field=name[:60], status=400
            )


def takes(*names: str) -> Callable[[View], View]:
    """Say which query parameters the view of a page takes; a view that says nothing takes none."""

    def said(view: View) -> View:
        view.takes = names  # type: ignore[attr-defined]
        return view

    return said


def takes_anything(view: View) -> View:
    """Let the view of a probe be asked with whatever a load balancer adds; it reads nothing."""
    view.takes = None  # type: ignore[attr-defined]
    return view


def number(params: QueryDict, name: str, *, low: int, high: int, default: int) -> int:
    """Return a whole number between `low` and `high`, both included."""
    value = given(params, name)
    if not value:
        return default
    if not re.fullmatch(r"-?[0-9]{1,18}", value) or not low <= int(value) <= high:
        raise refuse(name, "invalid", f"`{name}` is a whole number from {low} to {high}, not {value[:40]!r}.")
    return int(value)


def seconds(params: QueryDict, name: str) -> float:
    """Return a time of 0 s or more, 0 when not given."""
    value = given(params, name)
    try:
        found = float(value or 0)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise refuse(name, "invalid", f"`{name}` is a number of seconds, 0 or more, not {value[:40]!r}.")
    return found


def day(params: QueryDict, name: str) -> date | None:
    """Return a day written as YYYY-MM-DD, None when not given."""
    value = given(params, name)
    if not value:
        return None
    try:
        return date.fromisoformat(value) if _DAY.fullmatch(value) else _no_day(name, value)
    except ValueError:
        return _no_day(name, value)


def _no_day(name: str, value: str) -> date:
    raise refuse(name, "invalid", f"`{name}` is a day of the calendar as YYYY-MM-DD, not {value[:40]!r}.")


def page_number(params: QueryDict) -> int:
    """Return the page that `?page=` asks for, from 1; the first when not given."""
    return number(params, "page", low=1, high=10**9, default=1)


def page_of(rows: Any, size: int, params: QueryDict) -> Page[Any]:
    """Return the page that `?page=` asks for; beyond the last one it is the last, since lists shrink."""
    return Paginator(rows, size).get_page(page_number(params))


def demand_valid(form: Any, params: QueryDict) -> None:
    """Raise the first thing wrong with a form of query parameters (also of a filter set)."""
    for name in form.fields:
        given(params, name)
    for name, errors in form.errors.get_json_data().items():
        raise refuse(name, errors[0]["code"] or "invalid", f"{name}: {errors[0]['message']}")

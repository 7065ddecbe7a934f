"""The few components that templates share."""

import re
from typing import Any
from urllib.parse import urlencode

from django import template
from django.http import HttpRequest
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from leaderboard import ranking
from portal.core import units
from portal.pages.words import BACKENDS, FLAGS, TONES
from problems.bounds import bound_on

register = template.Library()
register.filter("bound_on", bound_on)
_TICKS = re.compile(r"`([^`\n]{1,120})`")


@register.inclusion_tag("components/badge.html")
def state_badge(submission: Any) -> dict[str, str]:
    """Show verdict or state in a word, coloured by tone, and that it does not stand where it was removed."""
    key = submission.verdict or submission.state
    removed = submission.get_removed_display()
    return {"tone": TONES.get(key, "info"), "word": key.replace("_", " "), "removed": removed}


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: Any) -> str:
    """Return the present query string with some parameters changed; None removes one."""
    request: HttpRequest = context["request"]
    parameters = dict(request.GET.lists())
    for name, value in changes.items():
        if value is None:
            parameters.pop(name, None)
        else:
            parameters[name] = [str(value)]
    return "?" + urlencode([(name, value) for name, values in parameters.items() for value in values])


@register.filter
def duration(seconds: Any) -> str:
    """Show seconds with a fitting unit."""
    return units.duration(float(seconds)) if isinstance(seconds, int | float) and seconds > 0 else "–"


@register.filter
def milliseconds(ms: Any) -> str:
    """Show milliseconds with a fitting unit."""
    return duration(ms / 1e3) if isinstance(ms, int | float) else "–"


@register.filter
def microseconds(us: Any) -> str:
    """Show microseconds with a fitting unit."""
    return duration(us / 1e6) if isinstance(us, int | float) else "–"


@register.filter
def percent(share: Any) -> str:
    """Show a share as per cent."""
    if not isinstance(share, int | float):
        return "–"
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


@register.filter
def ticks(text: Any) -> SafeString:
    """Show what stands between backticks as code, and everything else as the text it is."""
    return mark_safe(_TICKS.sub(r"<code>\1</code>", conditional_escape(str(text))))  # noqa: S308 (escaped before)


@register.filter
def times(factor: Any) -> str:
    """Show a factor."""
    return f"{factor:.2f}×" if isinstance(factor, int | float) else "–"


@register.filter
def tied(score: Any) -> bool:
    """Whether a board calls a score a tie with the reference."""
    return ranking.is_tie(score.speedup, score.noise_floor)


@register.filter
def unresolved(flags: Any) -> bool:
    """Whether a measurement with these flags counts as a tie with the reference at best."""
    return not ranking.is_resolved(flags)


@register.filter
def raised_by(code: Any, rank: Any) -> bool:
    """Whether a rank is known whose exception ended the job: the others' stacks only say where they waited for it."""
    return code == "runtime_error.exception" and rank is not None


@register.filter
def small(value: Any) -> str:
    """Show an error or a bound to three digits."""
    return f"{value:.3g}" if isinstance(value, int | float) else "–"


@register.filter
def words(value: Any) -> str:
    """Show an identifier as words."""
    return str(value).replace("_", " ")


@register.filter
def flag(name: Any) -> str:
    """Show a flag of a result as a sentence; one that we have no words for as itself."""
    return FLAGS.get(str(name), str(name))


@register.filter
def backend(name: str) -> str:
    """Show a backend as its makers write it."""
    return BACKENDS[name]


@register.filter
def get(mapping: Any, key: str) -> Any:
    """Look up a key that is not a valid name in a template."""
    return mapping.get(key) if isinstance(mapping, dict) else None

"""What other programs read: feed of records, badges, the data set."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser
from django.contrib.syndication.views import Feed
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.http import require_safe

from leaderboard import asked, exports, model_page
from leaderboard.badges import badge_svg
from leaderboard.records import NewRecord, latest_records
from portal.core import query
from problems.models import Target

if TYPE_CHECKING:
    _Feed = Feed[NewRecord, Target]
else:
    _Feed = Feed  # generic for the type checker only


class RecordFeed(_Feed):
    """Atom feed of new records on a target."""

    feed_type = Atom1Feed

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Target:
        return asked.named_target(kwargs["target"])

    def title(self, obj: Target) -> str:
        return f"Records on {obj.title}"

    def link(self, obj: Target) -> str:
        return reverse("leaderboard:target", args=[obj.slug])

    def description(self, obj: Target) -> str:
        return "Scores that raised the best speedup of a problem."

    def items(self, obj: Target) -> list[NewRecord]:
        return latest_records(target=obj)

    def item_title(self, item: NewRecord) -> str:
        return f"{item.title}: {item.speedup:.2f}× by {item.entrant}"

    def item_description(self, item: NewRecord) -> str:
        before = (
            f"The best so far was {item.before:.2f}×." if item.before else "The first score of this problem."
        )
        return f"{item.entrant} reached {item.speedup:.2f}× at size “{item.size}”. {before}"

    def item_link(self, item: NewRecord) -> str:
        return reverse("pages:submission", args=[item.submission_id])

    def item_updateddate(self, item: NewRecord) -> datetime:
        return item.at


def _standing(slug: str, request: HttpRequest) -> dict[str, Any]:
    """Best verified fast_1 of a model on the target asked for, else where it solved most."""
    entrant = asked.named_entrant(slug, AnonymousUser())
    where = model_page.places_with_runs(entrant)
    target = query.choice(request.GET, "target", [row.slug for row in asked.ranked_targets()])
    chosen = next((pair for pair in where if not target or pair[0] == target), None)
    value: dict[str, Any] = {
        "schema": 1,
        "label": "PKB fast_1",
        "message": "not judged",
        "model": entrant.name,
    }
    if chosen is None:
        return value
    on = Target.objects.get(slug=chosen[0])
    rows = model_page.runs_of(entrant, on, chosen[1])
    verified = [row for row in rows if row.verified]
    if verified:
        best = max(verified, key=lambda row: row.fast_1)
        value |= {
            "message": f"{100 * best.fast_1:.1f} % ({on.slug}, {chosen[1]})",
            "fast_1": best.fast_1,
            "pass_1": best.pass_1,
        }
    return value


@query.takes("target")
@require_safe
def badge(request: HttpRequest, slug: str) -> HttpResponse:
    """The badge of a model as SVG."""
    standing = _standing(slug, request)
    return HttpResponse(badge_svg(standing["label"], standing["message"]), content_type="image/svg+xml")


@query.takes("target")
@require_safe
def badge_json(request: HttpRequest, slug: str) -> JsonResponse:
    """The same as JSON."""
    return JsonResponse(_standing(slug, request))


@require_safe
def scores_jsonl(request: HttpRequest) -> StreamingHttpResponse:
    """The data set, streamed."""
    answer = StreamingHttpResponse(exports.json_lines(), content_type="application/x-ndjson")
    answer["Content-Disposition"] = 'attachment; filename="pkb-scores.jsonl"'
    return answer


@require_safe
def data_card(request: HttpRequest) -> HttpResponse:
    """What the data set is."""
    return HttpResponse(exports.data_card(), content_type="text/markdown; charset=utf-8")

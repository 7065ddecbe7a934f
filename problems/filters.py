"""`?q=&level=&domain=&parallelism=&collective=&bound=&track=&solved_on=&unsolved_on=` for the list page and the
API alike."""

from typing import Any

import django_filters
from django.db import connection
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from portal.core.filtering import OneOf
from problems import selectors
from problems.models import Problem
from problems.solved import solved_on


class ProblemFilter(django_filters.FilterSet):
    """All filters narrow; a value that no problem has is refused with those there are."""

    q = django_filters.CharFilter(method="by_text", max_length=100)
    level = OneOf(known=lambda: map(str, selectors.facets().levels))
    domain = OneOf(known=lambda: selectors.facets().domains)
    parallelism = OneOf(method="by_item", known=lambda: selectors.facets().parallelism)
    collective = OneOf(method="by_item", known=lambda: selectors.facets().collectives)
    bound = OneOf(known=lambda: selectors.facets().bounds)
    track = OneOf(field_name="spec__track", known=lambda: selectors.facets().tracks)
    solved_on = OneOf(method="by_scores", known=lambda: selectors.target_slugs())
    unsolved_on = OneOf(method="by_scores", known=lambda: selectors.target_slugs())

    class Meta:
        model = Problem
        fields = ()

    def by_text(self, queryset: Any, name: str, value: str) -> Any:
        """Keep problems that hold every word."""
        return queryset.search(value)

    def by_scores(self, queryset: Any, name: str, value: str) -> Any:
        """Keep problems with (or without) a correct ranked score on a target."""
        solved = solved_on(value)
        return queryset.filter(pk__in=solved) if name == "solved_on" else queryset.exclude(pk__in=solved)

    def by_item(self, queryset: Any, name: str, value: str) -> Any:
        """Keep problems whose list has the item; SQLite has no JSON containment, so it looks at the text."""
        column = "collectives" if name == "collective" else name
        if connection.features.supports_json_field_contains:
            return queryset.filter(**{f"{column}__contains": [value]})
        cast = f"{column}_text"
        return queryset.annotate(**{cast: Cast(column, TextField())}).filter(
            Q(**{f"{cast}__contains": f'"{value}"'})
        )

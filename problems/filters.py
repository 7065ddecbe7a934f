"""`?q=&level=&domain=&parallelism=&collective=&bound=&track=&solved_on=&unsolved_on=` for the list page and the
API alike."""

from typing import Any

import django_filters
from django.db import connection
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from problems.models import Problem, Target
from problems.solved import solved_on


class ProblemFilter(django_filters.FilterSet):
    """All filters narrow; unknown values find nothing."""

    q = django_filters.CharFilter(method="by_text", max_length=100)
    level = django_filters.NumberFilter(min_value=1, max_value=6)
    domain = django_filters.CharFilter(max_length=40)
    parallelism = django_filters.CharFilter(method="by_item", max_length=40)
    collective = django_filters.CharFilter(method="by_item", max_length=40)
    bound = django_filters.CharFilter(max_length=20)
    track = django_filters.CharFilter(field_name="spec__track", max_length=20)
    solved_on = django_filters.CharFilter(method="by_scores", max_length=40)
    unsolved_on = django_filters.CharFilter(method="by_scores", max_length=40)

    class Meta:
        model = Problem
        fields = ()

    def by_text(self, queryset: Any, name: str, value: str) -> Any:
        """Keep problems that hold every word."""
        return queryset.search(value)

    def by_scores(self, queryset: Any, name: str, value: str) -> Any:
        """Keep problems with (or without) a correct ranked score on a target."""
        if not Target.objects.active().filter(slug=value).exists():
            return queryset.none()
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

"""Filters of lists that refuse what they do not know, naming what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.request import Request

from portal.core.query import demand_valid, none_of

Known = Callable[[], Iterable[str]]


class OneOfField(forms.CharField):
    """One of some values that may only be known when asked, such as what the catalogue holds now."""

    def __init__(self, *, known: Known, told: Callable[[str], str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.known = known
        self.told = told or (lambda value: none_of(value, self.known()))

    def validate(self, value: Any) -> None:
        """Demand a known value; empty counts as not given."""
        super().validate(value)
        if value and value not in set(self.known()):
            raise ValidationError(self.told(value), code="unknown")


class OneOf(django_filters.CharFilter):
    """Keep rows where a column has one of the known values. `told` makes the refusal of another."""

    field_class = OneOfField


class WholeNumber(django_filters.NumberFilter):
    """Keep rows where a column has this whole number."""

    field_class = forms.IntegerField


class QueryFilterBackend(DjangoFilterBackend):
    """Filters of API lists: what is wrong is a 400."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        """Return the rows kept."""
        filters = self.get_filterset(request, queryset, view)
        if filters is None:
            return queryset
        demand_valid(filters.form, request.query_params)
        return filters.qs

"""Cursor pages: stable while rows are being added, and as fast on page 1,000 as on page 1."""

from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from portal.core import query


class CursorPages(CursorPagination):
    """Newest first; `?page_size=` up to 200."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"
    ordering: str | tuple[str, ...] = ("-created_at", "-id")

    def get_page_size(self, request: Request) -> int:
        """Return how many rows a page has; 400 for what is no such number."""
        return query.number(
            request.query_params, "page_size", low=1, high=self.max_page_size, default=type(self).page_size
        )

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Return the rows of the page; 400 for a cursor that is not ours."""
        query.given(request.query_params, "cursor")
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, ValidationError, ValueError, OverflowError):
            raise query.refuse(
                "cursor", "invalid", "This is no cursor of this list. Follow `next` from its first page."
            ) from None


class SlugPages(CursorPages):
    """By slug, for short lists."""

    ordering = ("slug",)

"""Cursor pages: stable while rows are being added, and as fast on page 1,000 as on page 1."""

from rest_framework.pagination import CursorPagination


class CursorPages(CursorPagination):
    """Newest first; `?page_size=` up to 200."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"
    ordering: str | tuple[str, ...] = ("-created_at", "-id")

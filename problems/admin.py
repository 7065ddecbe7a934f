"""Staff's view of the catalogue's mirror; the files are the truth, so nothing is edited here."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from problems.models import Problem, Target


class ReadOnly(admin.ModelAdmin):
    """Rows to look at."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """`sync_catalog` adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """`sync_catalog` changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What left the catalogue is retired, not deleted."""
        return False


@admin.register(Problem)
class ProblemAdmin(ReadOnly):
    """Problems."""

    list_display = ("number", "slug", "title", "level", "domain", "bound", "score_revision", "active")
    list_filter = ("active", "level", "domain")
    search_fields = ("slug", "title")


@admin.register(Target)
class TargetAdmin(ReadOnly):
    """Targets."""

    list_display = ("slug", "title", "ranks", "backend", "cells", "ranked", "active")

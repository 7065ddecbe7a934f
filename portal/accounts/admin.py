"""Staff's view of people and their tokens. Keys cannot be seen here either: only hashes exist."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from portal.accounts.models import ApiToken, User

admin.site.register(User, UserAdmin)


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    """Read only: tokens are made by their owners and revoked through the service."""

    list_display = (
        "prefix",
        "user",
        "name",
        "scopes",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )
    search_fields = ("prefix", "user__username", "name")
    exclude = ("digest",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody makes tokens for others."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tokens do not change."""
        return False

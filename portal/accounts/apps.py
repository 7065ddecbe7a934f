from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users and API tokens."""

    name = "portal.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Register the schema extension, which drf-spectacular finds by its import."""
        import portal.accounts.schema  # noqa: F401

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users and API tokens."""

    name = "portal.accounts"
    label = "accounts"

"""Forms of people: sign up, make a token."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.utils import timezone

from portal.accounts.models import Scope, User


class SignUpForm(UserCreationForm):
    """User name, address (optional) and password; Django's own rules for all of them."""

    email = forms.EmailField(required=False, help_text="Optional. Only used to reset your password.")

    class Meta:
        model = User
        fields = ("username", "email")

    def validate_password_for_user(
        self,
        user: User,
        password_field_name: str = "password1",  # noqa: S107 (a field's name)
    ) -> None:
        """Look at the first of the two, which is there even where the second differs: both are told at once."""
        super().validate_password_for_user(user, password_field_name)  # type: ignore[misc]  # unknown to the stubs


class TokenForm(forms.Form):
    """A name, what it may do, and how long it lives."""

    LIFETIMES = (("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "no end"))

    name = forms.CharField(max_length=60, help_text="Where you will use it, such as 'laptop' or 'agent-3'.")
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices, initial=Scope.values, widget=forms.CheckboxSelectMultiple
    )
    lifetime = forms.ChoiceField(choices=LIFETIMES, initial="90", required=False)

    def expiry(self) -> Any:
        """Return when the token ends, None for never."""
        days = self.cleaned_data.get("lifetime")
        return timezone.now() + timedelta(days=int(days)) if days else None

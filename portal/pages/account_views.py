"""Pages where a person takes their data along, or leaves."""

from django import forms
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.current import signed_in
from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.pages import data_rights


class EraseForm(forms.Form):
    """The password, so that an open browser alone is not enough."""

    password = forms.CharField(
        strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, *args: object, user: User, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.user = user

    def clean_password(self) -> str:
        """Demand the person's own password."""
        given = str(self.cleaned_data["password"])
        if not self.user.check_password(given):
            raise forms.ValidationError("This is not your password.")
        return given


@sensitive_post_parameters("password")
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """What we hold of a person: download it, or delete the account."""
    user = signed_in(request)
    form = EraseForm(request.POST if request.method == "POST" else None, user=user)
    if request.method == "POST" and form.is_valid():
        try:
            data_rights.erase(by=user)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            logout(request)
            messages.success(request, "Your account is deleted.")
            return redirect("pages:home")
    deleted, kept = data_rights.what_erasure_does(of=user)
    context = {"form": form, "deleted": deleted, "kept": kept}
    return render(request, "accounts/account.html", context, status=422 if form.errors else 200)


@login_required
@never_cache
@require_safe
def download(request: HttpRequest) -> StreamingHttpResponse:
    """Everything of the person, as a zip."""
    user = signed_in(request)
    answer = StreamingHttpResponse(data_rights.archive(of=user), content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="pkb-data-{timezone.now():%Y%m%d}.zip"'
    return answer

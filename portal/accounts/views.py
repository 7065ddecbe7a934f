"""Pages of people: sign up, API tokens. Log in and out are Django's own."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import services
from portal.accounts.current import signed_in
from portal.accounts.forms import SignUpForm, TokenForm
from portal.core import query
from portal.core.errors import DomainError

RESET_HOURS = settings.PASSWORD_RESET_TIMEOUT // 3600


class ChangePassword(auth.PasswordChangeView):
    """Set another password, knowing the present one."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("accounts:tokens")

    def form_valid(self, form: Any) -> HttpResponse:
        """Say that it worked."""
        messages.success(self.request, "Your password is changed.")
        return super().form_valid(form)


class ResetPassword(auth.PasswordResetView):
    """Ask for a link by mail; the answer does not tell whether there is such an account."""

    template_name = "accounts/reset.html"
    email_template_name = "accounts/reset_mail.txt"
    subject_template_name = "accounts/reset_subject.txt"
    success_url = reverse_lazy("accounts:reset_sent")
    extra_email_context = {"hours": RESET_HOURS}  # noqa: RUF012

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Say whether this site sends mail at all."""
        return super().get_context_data(**kwargs) | {"sends_mail": settings.SENDS_MAIL}


class SetPassword(auth.PasswordResetConfirmView):
    """Set a new password by the link of the mail."""

    template_name = "accounts/reset_new.html"
    success_url = reverse_lazy("accounts:login")

    def form_valid(self, form: Any) -> HttpResponse:
        """Say that it worked."""
        messages.success(self.request, "Your password is set. Log in with it.")
        return super().form_valid(form)


@query.takes("next")
@sensitive_post_parameters("password1", "password2")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    """Make an account and sign in to it. Who is signed in has one: they go on."""
    if request.user.is_authenticated:
        return redirect(_next(request))
    form = SignUpForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        user = form.save()
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        messages.success(request, f"Welcome, {user.get_username()}. Send your first file now.")
        return redirect(_next(request))
    status = 422 if form.errors else 200
    return render(
        request, "accounts/signup.html", {"form": form, "next": request.GET.get("next", "")}, status=status
    )


def _next(request: HttpRequest) -> str:
    """Return the address to go on to from signing up: `next` when it is a path of this site.

    Nothing else: redirect() takes a word without a slash for the name of a view.
    """
    wanted = request.POST.get("next") or request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if safe and wanted.startswith("/") else reverse("pages:submit")


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """List tokens, make one; the key is in the answer to this POST and nowhere else."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    made, status = None, 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = services.create_token(
                    by=signed_in(request),
                    name=form.cleaned_data["name"],
                    scopes=form.cleaned_data["scopes"],
                    expires_at=form.expiry(),
                )
                form, status = TokenForm(), 201
            except DomainError as error:
                form.add_error("name", error.message)
    rows = signed_in(request).api_tokens.filter(revoked_at=None)
    return render(
        request, "accounts/tokens.html", {"form": form, "tokens": rows, "made": made}, status=status
    )


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke one token."""
    try:
        token = services.revoke_token(by=signed_in(request), token_id=token_id)
        messages.success(request, f"Token {token.name} is revoked.")
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("accounts:tokens")

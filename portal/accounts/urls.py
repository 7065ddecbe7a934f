"""Paths of people."""

from django.contrib.auth import views as auth
from django.urls import path

from portal.accounts import views
from portal.core import query
from portal.core.throttles import guarded

app_name = "accounts"

urlpatterns = [
    path("signup/", guarded(views.sign_up), name="signup"),
    path(
        "login/",
        guarded(
            query.takes("next")(
                auth.LoginView.as_view(template_name="accounts/login.html", redirect_authenticated_user=True)
            )
        ),
        name="login",
    ),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path(
        "password/",
        guarded(views.ChangePassword.as_view()),
        name="password",
    ),
    path("password/reset/", guarded(views.ResetPassword.as_view()), name="reset"),
    path(
        "password/reset/sent/",
        auth.PasswordResetDoneView.as_view(
            template_name="accounts/reset_sent.html", extra_context={"hours": views.RESET_HOURS}
        ),
        name="reset_sent",
    ),
    path(
        "password/reset/<str:uidb64>/<str:token>/",
        views.SetPassword.as_view(),
        name="reset_confirm",
    ),
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", views.revoke, name="revoke"),
]

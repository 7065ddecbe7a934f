"""All pages. Each room has its own `urls.py`; this file only includes them."""

from django.contrib import admin
from django.urls import include, path

from portal.core import query
from portal.core.throttles import guarded

urlpatterns = [
    path("admin/login/", query.takes("next")(guarded(admin.site.login))),
    path("admin/", admin.site.urls),
    path("api/", include("portal.api_urls")),
    path("accounts/", include("portal.accounts.urls")),
    path("problems/", include("problems.urls")),
    path("boards/", include("leaderboard.urls")),
    path("embed/", include("leaderboard.embed_urls")),
    path("", include("portal.pages.urls")),
]

handler400 = "portal.pages.views.bad_request"
handler403 = "portal.pages.views.forbidden"
handler404 = "portal.pages.views.not_found"
handler500 = "portal.pages.views.server_error"

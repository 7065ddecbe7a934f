"""All pages. Each room has its own `urls.py`; this file only includes them."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("portal.api_urls")),
]

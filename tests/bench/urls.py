"""The portal's paths and one that only says hello: what the middleware alone costs."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def hello(request: HttpRequest) -> HttpResponse:
    """The least that a view can do."""
    return HttpResponse("hello")


urlpatterns = [path("hello/", hello), path("", include("portal.urls"))]

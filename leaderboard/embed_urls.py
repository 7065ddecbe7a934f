"""Paths of charts that may be framed."""

from django.urls import path

from leaderboard import embed_views

app_name = "embed"

urlpatterns = [
    path("models/", embed_views.models, name="models"),
    path("models/<slug:slug>/<slug:chart>/", embed_views.model, name="model"),
    path("<slug:target>/<slug:problem>/<slug:chart>/", embed_views.problem, name="problem"),
]

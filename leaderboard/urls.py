"""Paths of the boards. Fixed words come before target slugs."""

from django.urls import path

from leaderboard import feed_views, model_views, views

app_name = "leaderboard"

urlpatterns = [
    path("", views.index, name="index"),
    path("models/", model_views.models, name="models"),
    path("models.csv", model_views.models_csv, name="models_csv"),
    path("models.json", model_views.models_json, name="models_json"),
    path("models/<slug:slug>/", model_views.model, name="model"),
    path("models/<slug:slug>.json", model_views.model_json, name="model_json"),
    path("models/<slug:slug>/badge.svg", feed_views.badge, name="badge"),
    path("models/<slug:slug>/badge.json", feed_views.badge_json, name="badge_json"),
    path("export/scores.jsonl", feed_views.scores_jsonl, name="scores_jsonl"),
    path("export/data_card.md", feed_views.data_card, name="data_card"),
    path("compare/", model_views.compare, name="compare"),
    path("taxonomy/", model_views.taxonomy, name="taxonomy"),
    path("published/", model_views.published_figures, name="published"),
    path("problems/", views.problems, name="problems"),
    path("<slug:target>/", views.target_index, name="target"),
    path("<slug:target>/records.atom", feed_views.RecordFeed(), name="records"),
    path("<slug:target>/<slug:problem>/", views.problem_board, name="problem"),
    path("<slug:target>/<slug:problem>.csv", views.problem_board_csv, name="problem_csv"),
    path("<slug:target>/<slug:problem>.json", views.problem_board_json, name="problem_json"),
]

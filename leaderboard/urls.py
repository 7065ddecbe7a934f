"""Paths of the boards. Fixed words come before target slugs."""

from django.urls import path

from leaderboard import compare_views, export_views, feed_views, import_views, model_views, views

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
    path("export/", export_views.versions, name="export"),
    path("export/versions.json", export_views.versions_json, name="export_json"),
    path("export/build/", export_views.build, name="export_build"),
    path("export/<int:version>/<str:name>", export_views.version_file, name="export_file"),
    path("imported/", import_views.imported, name="imported"),
    path("imported.json", import_views.imported_json, name="imported_json"),
    path("compare/", compare_views.compare, name="compare"),
    path("taxonomy/", compare_views.taxonomy, name="taxonomy"),
    path("published/", model_views.published_figures, name="published"),
    path("problems/", views.problems, name="problems"),
    path("<slug:target>/", views.target_index, name="target"),
    path("<slug:target>/records.atom", feed_views.RecordFeed(), name="records"),
    path("<slug:target>/<slug:problem>/", views.problem_board, name="problem"),
    path("<slug:target>/<slug:problem>.csv", views.problem_board_csv, name="problem_csv"),
    path("<slug:target>/<slug:problem>.json", views.problem_board_json, name="problem_json"),
]

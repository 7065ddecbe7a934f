"""Paths of the boards."""

from django.urls import path

from leaderboard import views

app_name = "leaderboard"

urlpatterns = [
    path("", views.index, name="index"),
    path("<slug:target>/", views.target_index, name="target"),
    path("<slug:target>/<slug:problem>/", views.problem_board, name="problem"),
    path("<slug:target>/<slug:problem>.csv", views.problem_board_csv, name="problem_csv"),
    path("<slug:target>/<slug:problem>.json", views.problem_board_json, name="problem_json"),
]

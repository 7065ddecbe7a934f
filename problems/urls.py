"""Paths of the catalogue. The problem's own page is put together in portal.pages, which may ask the boards."""

from django.urls import path

from problems import views

app_name = "problems"

urlpatterns = [
    path("", views.problem_list, name="list"),
    path("map/", views.problem_map, name="map"),
    path("<slug:slug>/starter.py", views.starter, name="starter"),
]

"""Paths of pages that draw on several rooms."""

from django.urls import path

from portal.core.throttles import guarded
from portal.pages import account_views as account
from portal.pages import review_views as review
from portal.pages import run_views as runs
from portal.pages import submission_views as submissions
from portal.pages import views

app_name = "pages"

urlpatterns = [
    path("", views.home, name="home"),
    path("problems/<slug:slug>/", views.problem, name="problem"),
    path("account/", guarded(account.account), name="account"),
    path("account/data.zip", account.download, name="account_data"),
    path("submit/", submissions.submit_form, name="submit"),
    path("runs/", runs.runs, name="runs"),
    path("runs/new/", runs.new_run, name="new_run"),
    path("runs/<int:run_id>/", runs.run, name="run"),
    path("submissions/", submissions.mine, name="my_submissions"),
    path("submissions/<uuid:submission_id>/", submissions.page, name="submission"),
    path("submissions/<uuid:submission_id>/live/", submissions.live, name="submission_live"),
    path("submissions/<uuid:submission_id>/cancel/", submissions.cancel_submission, name="submission_cancel"),
    path(
        "submissions/<uuid:submission_id>/visibility/", submissions.visibility, name="submission_visibility"
    ),
    path("submissions/<uuid:submission_id>/source/", submissions.download, name="submission_source"),
    path("submissions/<uuid:submission_id>/trace/", submissions.trace, name="submission_trace"),
    path("submissions/<uuid:submission_id>/standing/", review.standing, name="submission_standing"),
    path("review/", review.queue, name="review"),
    path("review/rescore/", review.batch, name="review_batch"),
    path("review/submissions/<uuid:submission_id>/", review.act, name="review_act"),
    path("docs/", views.docs, name="docs"),
    path("docs/measurements/<str:name>", views.measured, name="measured"),
    path("docs/<path:slug>/", views.doc, name="doc"),
    path("status/", views.status, name="status"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]

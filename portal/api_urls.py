"""The API's tree. The version is one line."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView

from leaderboard import api as boards
from portal.core.views import unknown_path
from portal.pages import standing_api, submission_api
from portal.pages.schema import SchemaPage
from portal.submissions import api as submissions
from portal.submissions.run_api import RunDetail
from portal.submissions.upload_api import RunUpload
from problems import api as problems

app_name = "api"

v1 = [
    path("submissions/", submissions.SubmissionList.as_view(), name="submissions"),
    path("submissions/<uuid:submission_id>/", submission_api.SubmissionDetail.as_view(), name="submission"),
    path(
        "submissions/<uuid:submission_id>/cancel/",
        submissions.SubmissionCancel.as_view(),
        name="submission_cancel",
    ),
    path(
        "submissions/<uuid:submission_id>/visibility/",
        submissions.SubmissionVisibility.as_view(),
        name="submission_visibility",
    ),
    path(
        "submissions/<uuid:submission_id>/logs/",
        submission_api.SubmissionLogs.as_view(),
        name="submission_logs",
    ),
    path(
        "submissions/<uuid:submission_id>/result/",
        submission_api.SubmissionResult.as_view(),
        name="submission_result",
    ),
    path(
        "submissions/<uuid:submission_id>/source/",
        submissions.SubmissionSource.as_view(),
        name="submission_source",
    ),
    path(
        "submissions/<uuid:submission_id>/trace/",
        submission_api.SubmissionTrace.as_view(),
        name="submission_trace",
    ),
    path(
        "submissions/<uuid:submission_id>/withdraw/",
        standing_api.SubmissionWithdraw.as_view(),
        name="submission_withdraw",
    ),
    path(
        "submissions/<uuid:submission_id>/rescore/",
        standing_api.SubmissionRescore.as_view(),
        name="submission_rescore",
    ),
    path(
        "submissions/<uuid:submission_id>/appeal/",
        standing_api.SubmissionAppeal.as_view(),
        name="submission_appeal",
    ),
    path(
        "submissions/<uuid:submission_id>/appeal/answer/",
        standing_api.AppealAnswer.as_view(),
        name="submission_appeal_answer",
    ),
    path("runs/", submissions.RunList.as_view(), name="runs"),
    path("runs/<int:run_id>/", RunDetail.as_view(), name="run"),
    path("runs/<int:run_id>/upload/", RunUpload.as_view(), name="run_upload"),
    path("quota/", submissions.QuotaView.as_view(), name="quota"),
    path("problems/", problems.ProblemList.as_view(), name="problems"),
    path("problems/prompts.zip", problems.PromptArchive.as_view(), name="prompt_archive"),
    path("problems/<str:slug>/", problems.ProblemDetail.as_view(), name="problem"),
    path("problems/<str:slug>/prompt/", problems.ProblemPrompt.as_view(), name="problem_prompt"),
    path("leaderboards/<str:target>/models/", boards.ModelBoard.as_view(), name="model_board"),
    path("leaderboards/<str:target>/imported/", boards.ImportedResults.as_view(), name="imported_results"),
    path(
        "leaderboards/<str:target>/problems/<str:problem>/",
        boards.ProblemBoard.as_view(),
        name="problem_board",
    ),
    path("targets/", problems.TargetList.as_view(), name="targets"),
    path("targets/<str:slug>/", problems.TargetDetail.as_view(), name="target"),
]

urlpatterns = [
    path("v1/", include(v1)),
    path("schema/", SpectacularAPIView.as_view(throttle_classes=[]), name="schema"),
    path("schema/browse/", SchemaPage.as_view(), name="schema_page"),
    re_path(r"^.*$", unknown_path),
]

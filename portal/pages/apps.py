from django.apps import AppConfig


class PagesConfig(AppConfig):
    """Composition root of the pages; no models."""

    name = "portal.pages"
    label = "pages"

    def ready(self) -> None:
        """Let the catalogue ask the boards what is solved, the door the evaluator who serves, and the boards hear what
        is no longer shown."""
        from evaluator.serving import EVALUATORS
        from leaderboard.review import check_firsts
        from leaderboard.selectors import leaders, solved_problems
        from portal.submissions import serving, shown
        from portal.submissions.progress import own_results
        from problems import solved

        solved.answer_with(solved.Answers(solved=solved_problems, leaders=leaders, own=own_results))
        serving.answer_with(EVALUATORS)
        shown.answer_with(check_firsts)

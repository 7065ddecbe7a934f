from django.apps import AppConfig


class PagesConfig(AppConfig):
    """Composition root of the pages; no models."""

    name = "portal.pages"
    label = "pages"

    def ready(self) -> None:
        """Let the catalogue ask the boards, which it may not import, what is solved."""
        from leaderboard.selectors import solved_problems
        from problems.solved import answer_with

        answer_with(solved_problems)

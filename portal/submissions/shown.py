"""Something left the public surfaces, or came back to them. What else is due then the boards know; this room does not
look up at them, so the composition root hands the function in (`portal.pages.apps`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portal.submissions.models import Submission

_hearer: list[Callable[[Submission], None]] = []


def answer_with(hearer: Callable[[Submission], None]) -> None:
    """Take the function that hears of every such submission, within the transaction of the change."""
    _hearer[:] = [hearer]


def changed(submission: Submission) -> None:
    """Tell that a submission is no longer shown, or is shown again."""
    for hearer in _hearer:
        hearer(submission)

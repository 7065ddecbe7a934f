"""What the judge raises. Verdicts are results, not errors."""

from __future__ import annotations


class JudgeError(Exception):
    """Base of all."""


class JudgeFault(JudgeError):
    """A fault of ours: the host, the reference or the judge itself. Never the submission's."""


class Unfit(JudgeFault):
    """The host's cards are sick, hot or used by somebody else: no job may start on them."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = reasons
        super().__init__("this host is not fit: " + "; ".join(reasons))


class Stopped(JudgeError):
    """The caller's `should_stop` said so."""


class SizeTooLarge(JudgeError, ValueError):
    """The size does not fit the target: nobody's fault, said before ranks start or when the reference shows it."""

    code = "size.too_large_for_target"


class NoCards(JudgeError, ValueError):
    """The target's cards are not on this machine: nobody's fault."""

    def __init__(self, there: int, missing: list[int]) -> None:
        one = len(missing) == 1
        told = f"{'card' if one else 'cards'} {', '.join(map(str, missing))} {'is' if one else 'are'} missing"
        super().__init__(
            f"this host has {there} cards; {told}. Score the file on a host "
            "with cards (docs/gpu-hosts.md) or send it to a portal that serves the target; "
            "`python -m evaluator.harness build` compiles it here."
        )


class NoSandbox(JudgeError):
    """This host cannot isolate a job and the file is no bundled sample; `fix` says what lifts that."""

    code = "host.no_sandbox"

    def __init__(self, reasons: list[str], fix: str | None) -> None:
        self.reasons, self.fix = reasons, fix
        super().__init__(
            "This host cannot isolate a submission ("
            + "; ".join(reasons)
            + "), so it scores bundled samples only."
            + (f" To lift that: {fix}" if fix else "")
        )

"""Errors of the domain. Each has a stable code, and says which field is wrong and what to change."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldError:
    """One thing wrong with one field of the request."""

    field: str
    code: str
    message: str


class DomainError(Exception):
    """A refusal with a reason. `status` is the HTTP status it becomes at the door."""

    status = 400
    title = "The request cannot be carried out"

    def __init__(
        self, code: str, message: str, *, field: str = "", status: int | None = None, **extra: object
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.extra = extra
        if status is not None:
            self.status = status

    @property
    def errors(self) -> list[FieldError]:
        """Return the field errors, none when the refusal is about no field."""
        return [FieldError(self.field, self.code, self.message)] if self.field else []


class InvalidInput(DomainError):
    """What was sent is not acceptable; changing the named field makes it so."""

    status = 422
    title = "The input is not acceptable"


class NotAllowed(DomainError):
    """The actor may not do this."""

    status = 403
    title = "Not allowed"


class NotFound(DomainError):
    """There is no such thing, or the actor may not know of it."""

    status = 404
    title = "Not found"


class Conflict(DomainError):
    """The thing is in a state in which this cannot be done."""

    status = 409
    title = "Conflict with the present state"


class StateConflict(Conflict):
    """A compare-and-set of a state found another state than expected."""


class TooMany(DomainError):
    """A limit is reached; `retry_after` says in how many seconds it is worth trying again."""

    status = 429
    title = "Limit reached"

    def __init__(self, code: str, message: str, *, retry_after: int, **extra: object) -> None:
        super().__init__(code, message)
        self.extra = {"retry_after": retry_after, **extra}
        self.retry_after = retry_after

"""The id of the request being answered, for logs and error bodies."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")

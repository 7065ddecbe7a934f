"""Readers of request bodies that turn every malformed body into a 400 that says what to change."""

import json
from collections.abc import Mapping
from typing import IO, Any

from django.core.exceptions import SuspiciousOperation
from django.http import UnreadablePostError
from django.utils.http import parse_header_parameters
from rest_framework import parsers
from rest_framework.exceptions import ParseError

_HOW = "Send it as `curl -F file=@solution.py -F problem=… -F target=…` does."


class JSONParser(parsers.JSONParser):
    """JSON in UTF-8, also when it is nested so deeply that Python gives up; no name twice in one object."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value; ParseError for what is no JSON."""
        encoding = parsers.get_encoding(parser_context or {})  # type: ignore[attr-defined]
        try:
            return json.loads(
                stream.read().decode(encoding), parse_constant=_no_constant, object_pairs_hook=_unique
            )
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error
        except UnreadablePostError as error:
            raise ParseError("The body ended before its announced length. Send it again.") from error
        except ValueError as error:
            raise ParseError(f"The body is no JSON: {error}.") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice[:60]!r} is there twice")
    return found


class _Tail:
    """A stream that remembers its last bytes, so that a body cut short can be told from a whole one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        """Read and remember."""
        got = self._stream.read(size)
        self.last = (self.last + got)[-512:]
        return got


class MultiPartParser(parsers.MultiPartParser):
    """Forms with files: whole, with a boundary, in a known encoding, with no field twice."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return data and files; ParseError for what is no form or only a part of one."""
        tail = _Tail(stream)
        try:
            found = super().parse(tail, media_type, parser_context)  # type: ignore[arg-type]
        except (LookupError, UnicodeError, ValueError) as error:
            raise ParseError(f"The multipart body is malformed. {_HOW}") from error
        except SuspiciousOperation as error:  # too many fields or files, or too much in them
            raise ParseError(f"The form holds too much: {error} {_HOW}") from error
        except UnreadablePostError as error:
            raise ParseError("The body ended before its announced length. Send it again.") from error
        _, options = parse_header_parameters(media_type or "")
        closing = f"--{options.get('boundary', '')}--".encode()
        if closing not in tail.last:
            raise ParseError(f"The multipart body is cut short: its closing boundary is missing. {_HOW}")
        _demand_single(found)
        return found


def _demand_single(found: Any) -> None:
    """Refuse a field that is there twice: which of the two was meant?"""
    for name in {*found.data, *found.files}:
        count = len(found.data.getlist(name)) + len(found.files.getlist(name))
        if count > 1:
            raise RepeatedField(name, count)


class RepeatedField(ParseError):
    """A form with two values for one field."""

    def __init__(self, name: str, count: int) -> None:
        self.field = name[:60]
        super().__init__(f"`{self.field}` is there {count} times. Send it once.", f"{self.field}.repeated")

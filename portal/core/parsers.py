"""Readers of request bodies that turn every malformed body into a 400."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework import parsers
from rest_framework.exceptions import ParseError


class JSONParser(parsers.JSONParser):
    """JSON, also when it is nested so deeply that Python gives up."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value; ParseError for what is no JSON."""
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error


class MultiPartParser(parsers.MultiPartParser):
    """Forms with files, also when the boundary is missing or the encoding is unknown."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return data and files; ParseError for what is no form."""
        try:
            return super().parse(stream, media_type, parser_context)
        except (LookupError, UnicodeError, ValueError) as error:
            raise ParseError("The multipart body is malformed.") from error

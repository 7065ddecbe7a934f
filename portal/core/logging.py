"""Logs are one JSON object a line, each with the id of the request it belongs to."""

import json
import logging
from datetime import UTC, datetime

from portal.core.request_id import request_id

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "request"}


class JsonFormatter(logging.Formatter):
    """Render a record as JSON; values given through `extra=` become keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; anything that JSON does not know is shown as its `str`."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if request_id.get():
            line["request_id"] = request_id.get()
        line.update({k: v for k, v in record.__dict__.items() if k not in _STANDARD})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)

"""The log on stderr: lines of text, or a JSON object each. Neither has secrets or tokens of links."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from typing import Any

import orjson

from executor.kernel.process.observe import doing
from executor.kernel.values.redact import Redactor
from server.variables import LogFormat

# Addresses with one of these contain a credential: a link, a callback address, a webhook with its query.
_LINK = re.compile(r"(/(?:resume|callbacks|hooks|forms|chat)/[^\s/?#\"']{0,3})[^\s#\"']*")
_HIDDEN = r"\1***"


class LogFormatter(logging.Formatter):
    """Lines without secrets and without the tokens of links. Tracebacks included: an exception of a library may quote
    its arguments."""

    def __init__(self, secrets: list[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redactor = Redactor(secrets)
        self.also: Redactor | None = None  # of an engine, which learns stored secrets

    def format(self, record: logging.LogRecord) -> str:
        return self.clean(super().format(record))

    def clean(self, text: str) -> str:
        text = self._redactor.redact(text)
        return _LINK.sub(_HIDDEN, text if self.also is None else self.also.redact(text))


class JsonFormatter(LogFormatter):
    """An object for each line: `at`, `level`, `logger`, `message`; `error` is a traceback. Lines about a workflow's run
    have `run` and `workflow`, lines about an attempt also `node` and `attempt`, lines of the access log `request` (see
    server/http/security.py)."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            # Cleaned before it is JSON: in JSON a secret with a quotation mark would look different.
            "message": self.clean(record.getMessage()),
        }
        if (now := doing()) is not None:
            line["run"], line["workflow"] = now.run, self.clean(now.workflow)
            if now.node is not None:
                line["node"], line["attempt"] = self.clean(now.node), now.attempt
        if (request := getattr(record, "request", None)) is not None:
            line["request"] = {
                name: self.clean(value) if isinstance(value, str) else value for name, value in request.items()
            }
        if record.exc_info:
            line["error"] = self.clean(self.formatException(record.exc_info))
        if record.stack_info:
            line["stack"] = self.clean(self.formatStack(record.stack_info))
        return orjson.dumps(line).decode()


FORMATTERS: dict[LogFormat, type[LogFormatter]] = {"text": LogFormatter, "json": JsonFormatter}


def keep_from_log(redactor: Redactor) -> None:
    """Replace in every line the values that `redactor` has now and later."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, LogFormatter):
            handler.formatter.also = redactor


def log_to_stderr(level: str, secrets: list[str], format: LogFormat = "text") -> None:
    """`secrets` are replaced in every line."""
    handler = logging.StreamHandler()
    handler.setFormatter(FORMATTERS[format](secrets))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # what it ignores as a session ends: weft reports the outage

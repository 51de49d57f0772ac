"""The log on stderr: lines without secrets, and without the tokens of links."""

from __future__ import annotations

import logging
import re

from executor.values.redact import Redactor

# What stands in an address of one of these is the credential: a link, a callback address, a webhook with its query.
_LINK = re.compile(r"(/(?:resume|callbacks|hooks)/[^\s/?#\"']{0,3})[^\s#\"']*")
_HIDDEN = r"\1***"


class Formatter(logging.Formatter):
    """Tracebacks included: an exception of a library may quote its arguments."""

    def __init__(self, secrets: list[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redactor = Redactor(secrets)

    def format(self, record: logging.LogRecord) -> str:
        return _LINK.sub(_HIDDEN, self._redactor.redact(super().format(record)))


def log_to_stderr(level: str, secrets: list[str]) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter(secrets))
    logging.basicConfig(level=level.upper(), handlers=[handler])

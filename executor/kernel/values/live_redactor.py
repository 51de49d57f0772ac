"""A redactor that learns: values of secrets become known while a process runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from executor.kernel.values.redact import RedactedStream, Redactor


class LiveRedactor(Redactor):
    """A redactor that learns secrets. Its inner redactor is replaced as a whole, so any thread may use it meanwhile. It
    keeps what it has learned: an old value may still occur in an answer."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        super().__init__(secrets)
        self._texts = dict(secrets)
        self._now = Redactor(self._texts)

    def learn(self, name: str, version: int, secret: str) -> None:
        self.learn_all([(name, version, secret)])

    def learn_all(self, secrets: Iterable[tuple[str, int, str]]) -> None:
        """Learn secrets, each a name, a version and a value."""
        labelled = {name if version == 1 else f"{name}.{version}": secret for name, version, secret in secrets}
        if not labelled.items() <= self._texts.items():
            self._texts |= labelled
            self._now = Redactor(self._texts)

    def redact(self, text: str) -> str:
        return self._now.redact(text)

    def redact_cut(self, text: str) -> str:
        return self._now.redact_cut(text)

    def stream(self, send: Callable[[str], None]) -> RedactedStream:
        return RedactedStream(self, send)

    def redact_json(self, data: bytes) -> bytes:
        return self._now.redact_json(data)

    def redact_value(self, value: Any) -> Any:
        return self._now.redact_value(value)

    def named(self, value: Any) -> tuple[Any, list[str]]:
        return self._now.named(value)

    def label(self, text: str) -> str:
        return self._now.label(text)

    def _tail(self, text: str) -> tuple[int, int]:
        return self._now._tail(text)

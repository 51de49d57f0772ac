"""The log and the live text of one attempt.

Lines of the log go to the journal as they come, those of a quarter of a second together. Live text goes to readers at
once (`node.delta`) and to the journal when the attempt ends. Both are bounded, and secrets are taken out first.
Output after the end of the attempt is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Final

from executor.kernel.run.results import Stream
from executor.kernel.values.redact import RedactedStream, Redactor

# The bounds of the log of one attempt.
LINES_MAX: Final = 200
LOG_BYTES_MAX: Final = 16 * 1024
TEXT_BYTES_MAX: Final = 16 * 1024
JOIN_S: Final = 0.25


class AttemptLog:
    """The log of one attempt. `keep` journals a message; `emit` sends a piece of live text to readers."""

    def __init__(
        self,
        redactor: Redactor,
        keep: Callable[[str, Stream], None],
        emit: Callable[[str], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._redactor = redactor
        self._keep = keep
        self._emit = emit
        self._loop = loop
        self._deltas: RedactedStream | None = None  # from the first piece to the end: it refers to this object
        self._lock = Lock()
        self._lines: list[str] = []
        self._count = self._bytes = self._left_out = 0
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    # --- from the handler, in any thread ---

    def log(self, *values: object) -> None:
        """Keep a line, as `print` would write it; several when a value has line breaks."""
        lines = unicode(self._redactor.redact(" ".join(map(str, values)))).rstrip("\n").split("\n")
        with self._lock:
            if self._ended:
                return
            for line in lines:
                self._add(line)
        self._on_loop(self._flush_soon)

    def emit(self, text: str) -> None:
        self._on_loop(partial(self._deltas_once, text))

    # --- on the loop ---

    def end(self) -> None:
        """Journal what is left; nearly always nothing."""
        with self._lock:
            self._ended = True
            if not (self._count or self._left_out) and self._deltas is None:
                return
        if self._deltas is not None:
            self._deltas.end()
            self._deltas = None
        with self._lock:
            if self._left_out:
                lines = f"{self._left_out} more line{'' if self._left_out == 1 else 's'}"
                self._lines.append(f"({lines} omitted: a log has at most {LINES_MAX} lines and 16 KiB per attempt)")
        self._flush()
        if self._text:
            data = self._text.encode()
            cut = data[-TEXT_BYTES_MAX:].decode(errors="ignore")
            self._keep(cut if len(data) <= TEXT_BYTES_MAX else f"…{cut}", "text")

    def _add(self, line: str) -> None:
        room = LOG_BYTES_MAX - self._bytes
        if self._count == LINES_MAX or room <= 0:
            self._left_out += 1
            return
        data = line.encode()
        if len(data) > room:
            line = data[:room].decode(errors="ignore") + "…"
        self._count += 1
        self._bytes += len(data) + 1
        self._lines.append(line)

    def _flush_soon(self) -> None:
        """Flush the first line at once, those that follow it soon together."""
        if self._timer is None and not self._ended:
            self._flush()
            self._timer = self._loop.call_later(JOIN_S, self._flush_again)

    def _flush_again(self) -> None:
        self._timer = None
        if self._lines and not self._ended:
            self._flush_soon()

    def _flush(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        if self._timer is not None and self._ended:
            self._timer.cancel()
        if lines:
            self._keep("\n".join(lines), "log")

    def _deltas_once(self, text: str) -> None:
        if self._ended:
            return
        if self._deltas is None:
            self._deltas = self._redactor.stream(self._emit_text)
        self._deltas(text)

    def _emit_text(self, text: str) -> None:
        text = unicode(text)
        self._text = (self._text + text)[-TEXT_BYTES_MAX - 1 :]  # one more than is kept marks that it was cut
        self._emit(text)

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # a thread
            here = False
        if here:
            call()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)


def unicode(text: str) -> str:
    """Surrogates without their other half, as in names of files that are no UTF-8, are written out: \\udce9."""
    return text.encode("utf-8", "backslashreplace").decode()

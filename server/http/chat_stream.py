"""The event stream of a chat page: text of the agents whose text is the answer, that the run waits for a person, and
its end. Nothing else of the journal leaves the server here."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from executor.kernel.journal.codec import data_of
from executor.kernel.store.run_rows import Record
from executor.service.topics.chats import PERSON


class ChatFrames:
    """Encodes frames for `EventStream`. `shown` is the set of blocks whose text is sent."""

    def __init__(self, shown: frozenset[str]) -> None:
        self._shown = shown
        self._waits: set[tuple[str | None, str, int]] = set()

    def records(self, records: list[Record]) -> Iterator[bytes]:
        for record in records:
            place = (record.node, record.path, record.attempt)
            if record.type == "node.started" and record.node in self._shown:
                yield _frame("begin", {})  # discards the text of an earlier attempt
            elif record.type == "wait.opened" and data_of(record).get("kind") in PERSON:
                self._waits.add(place)
                yield _frame("waiting", {})
            elif record.type == "wait.closed" and place in self._waits:
                self._waits.discard(place)
                yield _frame("working", {})
            elif record.type == "run.finished":
                yield _frame("end", {})

    def texts(self, texts: dict[str, str]) -> bytes:
        """Encode text by node key, such as `agent` or `agent#2`. Text of blocks in loops is not sent."""
        return b"".join(_frame("text", {"text": text}) for key, text in texts.items() if key in self._shown)


def _frame(event: str, data: dict[str, str]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), orjson.dumps(data))

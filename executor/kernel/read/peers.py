"""Messages from this process to the others on its database, and which of its runs they follow.

Nothing depends on a message: its content is in the database, where every process looks by itself. A lost message costs
the time until that look. Without a bus (`notify` does nothing) nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import orjson

# Topics of messages. The item is the id of a run unless noted.
RUN: Final = "run"  # its journal has grown
LEFT: Final = "left"  # it has left the memory of its worker: it ended, or waits
INBOX: Final = "inbox"  # there is something for its owner, or for who claims it
FAMILY: Final = "family"  # it was cancelled, and the runs below it with it
FOLLOW: Final = "follow"  # another process follows it for a while
DUE: Final = "due"  # there may be runs to claim (no item)
PLACES: Final = "places"  # some with this key are free, or reserved for others
MESSAGES: Final = "messages"  # a process that stops has freed some, about waits or to operators (no item)
SCHEDULES: Final = "schedules"  # they have changed (no item)
TEXT: Final = "text"  # live text: [run, node key, seq, text, number of the message]

FOLLOWED_S: Final = 60.0  # a follower asks again before that
AGAIN_S: Final = 20.0
RUNS_MAX: Final = 50_000  # that are followed; more of them are found by looks
TEXT_JOIN_S: Final = 0.05
TEXT_BYTES_MAX: Final = 7_000  # of one message, with which it fits into a notification of PostgreSQL

Notify = Callable[[str, str], None]


def _nothing(topic: str, item: str) -> None:
    pass


class Peers:
    """Sends messages to other processes. `notify` queues one and returns at once; `is_connected`: there is a bus."""

    def __init__(self) -> None:
        self.notify: Notify = _nothing
        self.is_connected = False
        self.followed: dict[str, float] = {}  # run -> until when, by the event loop's clock
        self._sent: dict[str, float] = {}  # run that is followed here -> when that was sent
        self._texts: dict[tuple[str, str, int], list[str]] = {}
        self._texts_sent = 0

    def connect(self, notify: Notify) -> None:
        self.notify, self.is_connected = notify, True

    # --- what happens here

    def grown(self, run: str, topic: str = RUN) -> None:
        """Something was committed about a run that may be followed elsewhere."""
        until_s = self.followed.get(run)
        if until_s is None:
            return
        if until_s < _now_s():
            del self.followed[run]
        else:
            self.notify(topic, run)

    def text(self, run: str, key: str, text: str, seq: int) -> None:
        """Live text of a run that is followed elsewhere; what comes within TEXT_JOIN_S is one message."""
        if not self._texts:
            asyncio.get_running_loop().call_later(TEXT_JOIN_S, self._send_texts)
        self._texts.setdefault((run, key, seq), []).append(text)

    def _send_texts(self) -> None:
        texts, self._texts = self._texts, {}
        for (run, key, seq), pieces in texts.items():
            if self.followed.get(run, 0.0) >= _now_s():
                self._texts_sent += 1  # two equal pieces are two messages
                text = _cut("".join(pieces))
                self.notify(TEXT, orjson.dumps([run, key, seq, text, self._texts_sent]).decode())

    # --- what is wanted here

    def follow(self, run: str) -> None:
        """Ask the process that executes the run for messages about it. Call it as often as you like."""
        if not self.is_connected:
            return
        now_s = _now_s()
        if now_s - self._sent.get(run, -AGAIN_S) < AGAIN_S:
            return
        if len(self._sent) >= RUNS_MAX:
            self._sent = {one: at_s for one, at_s in self._sent.items() if now_s - at_s < AGAIN_S}
        self._sent[run] = now_s
        self.notify(FOLLOW, run)

    def followed_again(self, run: str) -> None:
        now_s = _now_s()
        if len(self.followed) >= RUNS_MAX:
            self.followed = {one: until_s for one, until_s in self.followed.items() if until_s >= now_s}
        if len(self.followed) < RUNS_MAX:
            self.followed[run] = now_s + FOLLOWED_S

    def forget_sent(self) -> None:
        """Forget what was sent, so that it is sent again: others may have missed it."""
        self._sent.clear()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _cut(text: str) -> str:
    while (size := len(orjson.dumps(text))) > TEXT_BYTES_MAX:
        text = text[: max(1, len(text) * TEXT_BYTES_MAX // size - 1)]
    return text

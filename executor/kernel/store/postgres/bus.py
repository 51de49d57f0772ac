"""The bus of a fleet by LISTEN and NOTIFY, on a session of its own.

NOTIFY takes a lock of the whole database until its transaction ends. In a transaction that writes, that is until the
sync to disk, and all others that notify wait: a tenth of the commits was left. So messages are joined, sent at most
every 20 ms, after the commits they are about, and from here alone. The session cannot go through pgbouncer, which would
give the connection to others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import select
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson
import psycopg

from executor.kernel.process.repeated import Repeated
from executor.kernel.store.postgres.errors import message_of
from executor.kernel.store.postgres.limited import LimitedConnection, reachable

log = logging.getLogger("weft.bus")

CHANNEL: Final = "weft"
EVERY_S: Final = 0.02
BYTES_MAX: Final = 7_900  # PostgreSQL takes less than 8,000
QUEUE_MAX: Final = 20_000
ALIVE_S: Final = 4.0  # an idle session is asked for a sign of life
ANSWER_S: Final = 4.0  # after that the session is made again: what is received too late is found without the bus
PAUSE_S, PAUSE_MAX_S = 0.2, 0.5  # between tries to connect
CLOSE_S: Final = 2.0

Message = tuple[str, str]


class PostgresBus:
    """Has its connection in a thread, which a stalled network may block. `dropped` counts messages without room."""

    def __init__(self, dsn: str, every_s: float = EVERY_S) -> None:
        self.sent = self.heard = self.dropped = 0
        self._dsn = dsn
        self._every_s = every_s
        self._id = uuid.uuid4().hex[:12]  # a process receives its own notifications too
        self._lock = threading.Lock()
        self._queue: dict[Message, None] = {}
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_down = self._said_down = False
        self._outages = Repeated()
        self.is_alive = False

    def open(self, receive: Callable[[Sequence[Message]], None], connected: Callable[[], None]) -> None:
        assert self._thread is None, "opened twice"
        self._loop = asyncio.get_running_loop()
        self._receive, self._connected = receive, connected
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        os.set_blocking(self._wake_r, False)
        self._thread = threading.Thread(target=self._main, name="weft-bus", daemon=True)
        self._thread.start()

    def post(self, topic: str, item: str) -> None:
        with self._lock:
            was_empty = not self._queue
            if len(self._queue) < QUEUE_MAX:
                self._queue[topic, item] = None
            else:
                self.dropped += 1
        if was_empty and self._thread is not None:
            self._wake()

    async def close(self) -> None:
        thread = self._thread
        if thread is None:
            return
        self._closing.set()
        self._wake()
        await asyncio.to_thread(thread.join, CLOSE_S)
        self._thread = None
        if not thread.is_alive():  # else it hangs in a network, and ends with the process
            os.close(self._wake_r)
            os.close(self._wake_w)

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # it has many wake-ups to read
            os.write(self._wake_w, b"x")

    # --- everything below runs on the thread of the bus

    def _main(self) -> None:
        pause_s = PAUSE_S
        while not self._closing.is_set():
            try:
                with self._session() as connection:
                    self._report_up()
                    pause_s = PAUSE_S
                    self._serve(connection)
            except (psycopg.Error, OSError) as error:
                self._report_down(error)
            self.is_alive = False
            self._closing.wait(pause_s * random.uniform(0.5, 1.0))  # a fleet does not come at once
            pause_s = min(PAUSE_MAX_S, 2 * pause_s)

    def _session(self) -> psycopg.Connection[Any]:
        connection = LimitedConnection.connect(reachable(self._dsn), autocommit=True, application_name="weft-bus")
        connection.limit_s = ANSWER_S
        connection.add_notify_handler(lambda notify: self._take(notify.payload))  # that come while a statement runs
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET statement_timeout = 5000")
        connection.execute(f"LISTEN {CHANNEL}".encode())
        return connection

    def _serve(self, connection: psycopg.Connection[Any]) -> None:
        next_s = 0.0
        while True:
            closing = self._closing.is_set()
            now_s = time.monotonic()
            if self._queue and (closing or now_s >= next_s):
                payload = self._payload()
                connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
                self.sent += 1
                next_s = now_s + self._every_s
            elif closing:
                return
            else:
                self._wait(connection, next_s - now_s if self._queue else ALIVE_S)

    def _wait(self, connection: psycopg.Connection[Any], seconds: float) -> None:
        """Wait until there is something to send or to receive. Raises psycopg.Error."""
        poll = select.poll()  # select() takes no descriptors from 1,024 on
        poll.register(connection.fileno(), select.POLLIN)
        poll.register(self._wake_r, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(max(1, seconds * 1000))}
        if not ready and seconds >= ALIVE_S:
            connection.execute("SELECT 1")
        if self._wake_r in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_r, 4096)
        if connection.fileno() in ready:
            connection.pgconn.consume_input()
            while (notify := connection.pgconn.notifies()) is not None:
                self._take(notify.extra.decode())

    def _payload(self) -> str:
        """Remove and return as many messages as fit, oldest first; the others are sent with the next notification."""
        by_topic: dict[str, list[str]] = {}
        size = 64
        with self._lock:
            for message in list(self._queue):
                topic, item = message
                added = len(orjson.dumps(item)) + 1 + (0 if topic in by_topic else len(topic) + 6)
                if size + added > BYTES_MAX:
                    if size == 64:  # too long for any notification
                        del self._queue[message]
                        self.dropped += 1
                        continue
                    break
                size += added
                by_topic.setdefault(topic, []).append(item)
                del self._queue[message]
        return orjson.dumps([self._id, by_topic]).decode()

    def _take(self, payload: str) -> None:
        try:
            sender, by_topic = orjson.loads(payload)
            messages = [(str(topic), str(item)) for topic, items in by_topic.items() for item in items]
        except (ValueError, TypeError, AttributeError):
            return  # of another program
        if sender == self._id:
            return
        self.heard += 1
        self._call(self._receive, messages)

    def _call(self, call: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # the event loop is closed: the process ends
            self._loop.call_soon_threadsafe(call, *args)

    def _report_up(self) -> None:
        if self._said_down:
            log.warning("the bus works again")
        self._is_down, self._said_down, self.is_alive = False, False, True
        self._call(self._connected)

    def _report_down(self, error: Exception) -> None:
        """Once, and once a minute if it comes and goes: everything is found without it, a little later."""
        if self._is_down:
            return
        self._is_down = True
        if count := self._outages.due("down"):
            self._said_down = True
            text = "the bus does not work, so other processes are noticed within seconds: %s (%d times)"
            log.warning(text, message_of(error), count)

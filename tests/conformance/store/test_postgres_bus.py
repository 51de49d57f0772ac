"""Messages between processes by LISTEN and NOTIFY."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("psycopg")

import psycopg

from executor.kernel.store.postgres.bus import BYTES_MAX, CHANNEL, EVERY_S, Message, PostgresBus
from executor.kernel.store.postgres.store import PostgresStore
from tests.support.documents import document
from tests.support.postgres import by_its_clock, cluster
from tests.support.runs import ended, engine_on
from tests.support.until import until


class Process:
    """What one process hears, and how often it was connected."""

    def __init__(self, address: str) -> None:
        self.bus = PostgresBus(address)
        self.messages: list[Message] = []
        self.connections = 0

    def hear(self, messages: Sequence[Message]) -> None:
        self.messages += messages

    def connected(self) -> None:
        self.connections += 1


@asynccontextmanager
async def process(address: str, *first: Message) -> AsyncIterator[Process]:
    """`first`: what it has to say when its bus is opened, which goes into one notification."""
    made = Process(address)
    for topic, item in first:
        made.bus.post(topic, item)
    made.bus.open(made.hear, made.connected)
    await until(lambda: made.connections)
    try:
        yield made
    finally:
        await made.bus.close()


async def test_all_processes_but_the_sender_hear_a_message_once(postgres: str) -> None:
    said = [("run", "a")] * 3 + [("due", "")]
    async with process(postgres) as second, process(postgres) as third, process(postgres, *said) as first:
        await until(lambda: len(second.messages) >= 2 and len(third.messages) >= 2)
        assert second.messages == third.messages == [("run", "a"), ("due", "")]
        second.bus.post("run", "b")
        await until(lambda: first.messages)
        assert first.messages == [("run", "b")]


async def test_however_much_there_is_to_say_it_is_fifty_notifications_a_second(postgres: str) -> None:
    async with process(postgres) as first, process(postgres) as second:
        began_s = time.monotonic()
        for turn in range(40):
            for number in range(100):
                first.bus.post("run", f"{turn:03}{number:029}")
            await asyncio.sleep(0.01)
        await until(lambda: len(second.messages) == 4_000)
        assert first.bus.sent == second.bus.heard <= (time.monotonic() - began_s) / EVERY_S + 1
        assert first.bus.dropped == 0 and len(set(second.messages)) == 4_000


async def test_what_fits_into_no_notification_is_dropped(postgres: str) -> None:
    async with process(postgres) as first, process(postgres) as second:
        first.bus.post("text", "x" * BYTES_MAX)
        first.bus.post("text", "y" * (BYTES_MAX - 100))
        first.bus.post("text", "ä\0\x01" * 500)
        await until(lambda: len(second.messages) == 2)
        assert [len(item) for _, item in second.messages] == [BYTES_MAX - 100, 1_500] and first.bus.dropped == 1


async def test_a_message_is_sent_when_the_bus_is_closed(postgres: str) -> None:
    async with process(postgres) as second:
        async with process(postgres) as first:
            first.bus.post("run", "a")
            first.bus.post("due", "")
        await until(lambda: len(second.messages) == 2)


async def test_what_others_send_on_the_channel_is_passed_over(postgres: str) -> None:
    async with process(postgres) as first:
        with psycopg.connect(postgres, autocommit=True) as other:
            for payload in ("", "text", "[1]", '{"a": 1}', '["x", [1]]', '["y", {"run": ["a"]}]'):
                other.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
        await until(lambda: first.messages)
        assert first.messages == [("run", "a")]


async def test_only_the_bus_notifies(postgres: str) -> None:
    """Whatever a worker commits: in its transactions a NOTIFY would hold up those of all others."""
    address = by_its_clock(postgres)
    bus = PostgresBus(address)
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(f"LISTEN {CHANNEL}".encode())
        async with engine_on(PostgresStore(address), bus=bus) as engine:
            timer = {"type": "wait", "params": {"seconds": 0.01}}
            for _ in range(20):
                run = (await engine.submit(document("d", "start a", blocks={"a": timer}))).run
                assert (await ended(engine, run)).status == "succeeded"
            (of_the_bus,) = other.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'weft-bus' AND datname = current_database()"
            ).fetchall()
            assert bus.sent
        senders = {notify.pid for notify in other.notifies(timeout=0.1)}
    assert senders == set(of_the_bus)


async def test_a_dead_bus_is_said_once_and_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    server = cluster()
    server.start()
    try:
        async with process(server.address) as first:
            with caplog.at_level(logging.WARNING, "weft.bus"):
                server.crash()
                await until(lambda: not first.bus.is_alive)
                await asyncio.sleep(0.3)  # it tries some times
                first.bus.post("due", "")  # harms nothing
                server.start()
                await until(lambda: first.connections == 2)
        said = [record.getMessage() for record in caplog.records]
        assert len(said) == 2 and said[0].startswith("the bus does not work") and said[1] == "the bus works again"
    finally:
        server.remove()

"""Queries on a real PostgreSQL server, reached through a port of loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from executor.blocks.databases.databases import Databases
from executor.blocks.databases.rows import Answer, Query
from executor.blocks.http.binding import Rules, bound_to
from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError, Lost
from tests.support.postgres import as_url, socket_of
from tests.support.postgres_proxy import Proxy, proxy_in_a_thread

Place = tuple[str, Proxy, threading.Event]


@pytest.fixture
def place(postgres: str) -> Iterator[Place]:
    """An address with a host and a port; its proxy; and what makes it drop the answer to a COMMIT."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, name text, amount numeric)")
        connection.execute("INSERT INTO orders SELECT n, 'o' || n, n / 2.0 FROM generate_series(1, 5) AS n")
    armed = threading.Event()
    with proxy_in_a_thread(socket_of(postgres), armed.is_set) as proxy:
        yield address_of(postgres, proxy), proxy, armed


def address_of(postgres: str, proxy: Proxy) -> str:
    return as_url(postgres, host="reports.example", port=str(proxy.port), sslmode="prefer")


async def resolve(host: str, port: int) -> Sequence[str]:
    assert host == "reports.example"
    return ["127.0.0.1"]


def databases(*allowed: str) -> Databases:
    return Databases(GuardedClient(allowed or ["127.0.0.1"], resolve=resolve))


async def ask(place: Place, text: str, **more: Any) -> Answer:
    return await databases().ask(place[0], Query(text, **more), run="a test")


async def refusal(place: Place, text: str, **more: Any) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await ask(place, text, **more)
    return caught.value


async def test_types(place: Place) -> None:
    query = """SELECT 1::int AS whole, 2::bigint ^ 60 AS approximate, 9007199254740993::bigint AS large,
      12.30::numeric AS n,
      'NaN'::numeric AS nan, 'Infinity'::float8 AS infinite, true AS yes, NULL AS empty, DATE '2026-01-31' AS day,
      TIMESTAMP '2026-01-31 12:00' AS moment, TIMESTAMPTZ '2026-01-31 12:00:00.5+00' AT TIME ZONE 'UTC' AS utc,
      'infinity'::date AS never, INTERVAL '1 day 2 hours' AS pause, '\\x00ff'::bytea AS raw,
      '{"a": [1, 2.5]}'::jsonb AS doc,
      ARRAY[1, NULL, 3] AS list, ARRAY[[1.5], [2]] AS grid, '00000000-0000-0000-0000-000000000001'::uuid AS id,
      '10.0.0.1'::inet AS host, int4range(1, 3) AS span, TIME '01:02' AS t"""
    answer = await ask(place, query)
    assert answer.rows == [
        {
            "whole": 1, "approximate": 2.0**60, "large": "9007199254740993", "n": 12.3, "nan": "NaN",
            "infinite": "Infinity", "yes": True, "empty": None, "day": "2026-01-31", "moment": "2026-01-31T12:00:00",
            "utc": "2026-01-31T12:00:00.5", "never": "infinity", "pause": "P1DT2H", "raw": "AP8=",
            "doc": {"a": [1, 2.5]}, "list": [1, None, 3], "grid": [[1.5], [2]],
            "id": "00000000-0000-0000-0000-000000000001", "host": "10.0.0.1", "span": "[1, 3)", "t": "01:02:00",
        }
    ]  # fmt: skip
    zoned = "SELECT TIMESTAMPTZ '2026-01-31 12:00+00' AS at"
    assert str((await ask(place, zoned)).rows[0]["at"])[10:11] == "T"


async def test_values_are_bound(place: Place) -> None:
    hostile = "x'; DROP TABLE orders; --"
    given = {"text": hostile, "ids": [1, 3], "doc": {"a": [None]}, "yes": True, "least": 0.25}
    query = """SELECT id, :text::text AS text, :doc::jsonb AS doc, :yes AS yes FROM orders
      WHERE id = ANY(:ids) AND amount > :least AND name <> :text ORDER BY id"""
    rows = (await ask(place, query, parameters=given)).rows
    assert rows == [{"id": id, "text": hostile, "doc": {"a": [None]}, "yes": True} for id in (1, 3)]
    assert (await refusal(place, "SELECT :a::text", parameters={"a": "\x00"})).code == "params_invalid"
    assert (await refusal(place, "SELECT :a::text", parameters={"a": "\ud800"})).code == "params_invalid"


async def test_rows_are_cut(place: Place) -> None:
    answer = await ask(place, "SELECT n FROM generate_series(1, 10000000) AS n", max_rows=2)
    assert (answer.rows, answer.cut, answer.affected) == ([{"n": 1}, {"n": 2}], "rows", None)
    answer = await ask(place, "SELECT repeat('x', 100000) FROM generate_series(1, 1000)")
    assert answer.cut == "bytes"
    assert 30 < len(answer.rows) < 45


async def test_changes(place: Place) -> None:
    change = "UPDATE orders SET name = :name WHERE id > 2 RETURNING id"
    given = {"name": "x"}
    error = await refusal(place, change, parameters=given)
    assert (error.code, error.retryable) == ("sql_refused", False)
    answer = await ask(place, change, parameters=given, read_only=False, max_rows=1)
    assert (len(answer.rows), answer.cut, answer.affected) == (1, "rows", 3)
    assert (await ask(place, "INSERT INTO orders VALUES (6)", read_only=False)).affected == 1
    assert (await ask(place, "SELECT 1", read_only=False)).affected == 0
    assert (await ask(place, "SELECT count(*)::int AS n FROM orders WHERE name = 'x'")).rows == [{"n": 3}]
    error = await refusal(place, "INSERT INTO orders VALUES (7), (1)", read_only=False)
    assert "duplicate key" in error.message
    assert "Key (id)=(1) already exists" in error.message
    assert (await ask(place, "SELECT count(*)::int AS n FROM orders")).rows == [{"n": 6}]


@pytest.mark.parametrize(
    "query",
    [
        "SET TRANSACTION READ WRITE",
        "DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM orders; END $$",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "COMMIT; DELETE FROM orders",
        "SELECT 1; DELETE FROM orders",
        "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "COPY orders TO STDOUT",
        "COPY orders FROM STDIN",
        "CREATE TABLE t (a int)",
        "SELECT nextval('s')",
    ],
)
async def test_reading_changes_nothing(place: Place, query: str) -> None:
    with psycopg.connect(place[0].replace("reports.example", "127.0.0.1"), autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE s")
    assert (await refusal(place, query)).code in ("sql_refused", "sql_failed")
    assert (await ask(place, "SELECT count(*)::int AS n FROM orders")).rows == [{"n": 5}]


async def test_errors_say_where(place: Place) -> None:
    error = await refusal(place, "SELECT :a::text,\n  nam FROM orders", parameters={"a": ""})
    assert error.message == 'the database refused the query at line 2, column 3: column "nam" does not exist'
    assert 'Perhaps you meant to reference the column "orders.name".' in error.hint


async def test_a_query_that_takes_too_long(place: Place) -> None:
    for read_only in (True, False):
        error = await refusal(place, "SELECT pg_sleep(600)", timeout_s=2, read_only=read_only)
        assert (error.code, error.retryable) == ("sql_timeout", False)


async def test_a_cancelled_query_ends_on_the_server(place: Place) -> None:
    running = asyncio.create_task(ask(place, "SELECT pg_sleep(600), 'cancel me'", timeout_s=300))
    sleeping = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    async with asyncio.timeout(60):
        while not (await ask(place, sleeping)).rows[0]["n"]:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        while (await ask(place, sleeping)).rows[0]["n"]:
            await asyncio.sleep(0.01)


async def test_a_lost_commit_is_unknown_and_a_lost_query_is_not(place: Place) -> None:
    _, proxy, armed = place
    armed.set()
    with pytest.raises(Lost, match="while the change was committed"):
        await ask(place, "INSERT INTO orders VALUES (9)", read_only=False)
    armed.clear()
    assert (await ask(place, "SELECT count(*)::int AS n FROM orders WHERE id = 9")).rows == [{"n": 1}]
    running = asyncio.create_task(refusal(place, "INSERT INTO orders SELECT 10 FROM pg_sleep(600)", read_only=False))
    sleeping = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    async with asyncio.timeout(60):
        while not (await ask(place, sleeping)).rows[0]["n"]:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(proxy.cut_now)
        error = await running
    assert (error.code, error.retryable) == ("sql_connection", True)


async def test_only_permitted_addresses_are_dialled(place: Place) -> None:
    with pytest.raises(BlockError) as caught:
        await databases("10.0.0.0/8").ask(place[0], Query("SELECT 1"), run="a test")
    assert caught.value.code == "address_refused"
    assert place[1].sessions == 0


async def test_what_is_resolved_is_what_is_dialled(place: Place) -> None:
    """The second answer of a name that changes is never asked for."""
    asked = 0

    async def once(host: str, port: int) -> Sequence[str]:
        nonlocal asked
        asked += 1
        return ["127.0.0.1"] if asked == 1 else ["10.0.0.1"]

    client = GuardedClient(["127.0.0.1"], resolve=once)
    answer = await Databases(client).ask(place[0], Query("SELECT 1 AS n"), run="a test")
    assert (answer.rows, asked) == ([{"n": 1}], 1)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:///postgres?host=/tmp",
        "postgresql:///postgres",
        "postgresql://a@/tmp/b",
        "postgresql://%2Ftmp/postgres",
        "postgresql://@abstract/postgres?host=@abstract",
        "postgresql://reports.example/db?hostaddr=127.0.0.1",
        "postgresql://reports.example/db?service=x",
        "postgresql://reports.example/db?passfile=/etc/passwd",
        "postgresql://reports.example/db?sslkeylogfile=/tmp/x",
        "postgresql://reports.example,other.example/db",
        "postgresql://reports.example:0/db",
        "postgresql://u:secret word@reports.example:x y/db",
        "postgresql://u:secret@reports.example/db?nonsense",
    ],
)
async def test_addresses_that_lead_elsewhere_are_refused(address: str) -> None:
    with pytest.raises(BlockError) as caught:
        await databases().ask(address, Query("SELECT 1"), run="a test")
    assert caught.value.code == "params_invalid"
    assert "secret" not in caught.value.message


async def test_a_server_that_is_not_there() -> None:
    with pytest.raises(BlockError) as caught:
        await databases().ask("postgresql://u:secret@reports.example:1/db", Query("SELECT 1"), run="a test")
    assert (caught.value.code, caught.value.retryable) == ("sql_connection", True)
    assert "secret" not in caught.value.message


async def test_a_secret_is_sent_to_its_hosts_alone(place: Place) -> None:
    with bound_to({"REPORTS": Rules(["other.example", f"reports.example:{place[1].port + 1}"])}):
        error = await refusal(place, "SELECT 1")
    assert error.code == "secret_host_refused" and not error.retryable
    with bound_to({"REPORTS": Rules([f"reports.example:{place[1].port}"])}):
        assert (await ask(place, "SELECT 1 AS n")).rows == [{"n": 1}]

"""Queries on a real MariaDB server, reached through a port of loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import pytest

from executor.blocks.databases.databases import Databases
from executor.blocks.databases.rows import Answer, Login, Query
from executor.blocks.http.binding import Rules, bound_to
from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError, Lost
from tests.support.lossy import in_front_of
from tests.support.mariadb import HOST, PASSWORD, USER, Mariadb, NoMariadb, mariadb

pytestmark = pytest.mark.proof
SLEEPING = "FROM information_schema.processlist WHERE info LIKE '%SLEEP(600)%' AND id <> CONNECTION_ID()"


@pytest.fixture(scope="module")
def server() -> Iterator[Mariadb]:
    try:
        with mariadb() as started:
            yield started
    except NoMariadb as error:
        pytest.skip(str(error))


@pytest.fixture
def place(server: Mariadb) -> str:
    with server.connect() as link, link.cursor() as cursor:
        for text in (
            "DROP TABLE IF EXISTS orders, changed",
            """CREATE OR REPLACE PROCEDURE two(given int) BEGIN
              SELECT count(*) AS n FROM orders; SELECT 1; INSERT INTO orders (id) VALUES (given); END""",
            "CREATE TABLE orders (id int PRIMARY KEY, name varchar(200), amount decimal(10, 2))",
            "INSERT INTO orders SELECT seq, concat('o', seq), seq / 2 FROM seq_1_to_5",
        ):
            cursor.execute(text)
    return address_of(server.port)


def address_of(port: int, more: str = "") -> str:
    return f"mysql://{USER}:{quote(PASSWORD, safe='')}@{HOST}:{port}/shop{more}"


async def resolve(host: str, port: int) -> Sequence[str]:
    assert host == HOST
    return ["127.0.0.1"]


async def ask(place: str, text: str, **more: Any) -> Answer:
    login = more.pop("login", None)
    databases = Databases(GuardedClient(more.pop("allowed", ["127.0.0.1"]), resolve=resolve))
    return await databases.ask(place, Query(text, **more), run="a test", login=login)


async def refusal(place: str, text: str, **more: Any) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await ask(place, text, **more)
    assert PASSWORD not in caught.value.message
    return caught.value


async def until(place: str, sleeping: bool) -> None:
    async with asyncio.timeout(60):
        while bool((await ask(place, f"SELECT count(*) AS n {SLEEPING}")).rows[0]["n"]) is not sleeping:
            await asyncio.sleep(0.02)


async def test_types(place: str) -> None:
    query = """SELECT 1 AS whole, 9007199254740993 AS large, 12.30 AS n, 0.5e0 AS real_, TRUE AS yes, NULL AS empty,
      DATE '2026-01-31' AS day, TIMESTAMP '2026-01-31 12:00:00.5' AS moment, TIME '25:02:00' AS t, X'00ff' AS raw,
      CAST('0000-00-00' AS date) AS never, b'101' + 0 AS bits, 'tä' AS text, 1 AS whole"""
    answer = await ask(place, query)
    assert answer.rows == [
        {
            "whole": 1, "large": "9007199254740993", "n": 12.3, "real_": 0.5, "yes": 1, "empty": None,
            "day": "2026-01-31", "moment": "2026-01-31T12:00:00.5", "t": "25:02:00", "raw": "AP8=",
            "never": "0000-00-00", "bits": 5, "text": "tä", "whole_2": 1,
        }
    ]  # fmt: skip


async def test_values_are_bound(place: str) -> None:
    hostile = "x'; DROP TABLE orders; -- \\' \" ` 猫🐈"
    given = {"text": hostile, "doc": {"a": [None]}, "yes": True, "least": 0.25, "most": 2, "no": None}
    query = """SELECT id, :text AS text, :doc AS doc, :yes AS yes, ':text' AS fix, 'it\\'s :text' AS esc # :text
      FROM orders WHERE amount > :least AND name <> :text AND NOT name <=> :no ORDER BY id LIMIT :most"""
    rows = (await ask(place, query, parameters=given)).rows
    assert rows == [
        {"id": id, "text": hostile, "doc": '{"a":[null]}', "yes": 1, "fix": ":text", "esc": "it's :text"}
        for id in (1, 2)
    ]
    insert = "INSERT INTO orders VALUES (:id, :name, :amount)"
    await ask(place, insert, parameters={"id": 7, "name": hostile, "amount": 2.5}, read_only=False)
    found = await ask(place, "SELECT id, amount FROM orders WHERE name = :name", parameters={"name": hostile})
    assert found.rows == [{"id": 7, "amount": 2.5}]
    assert (await refusal(place, "SELECT :a", parameters={"a": "\ud800"})).code == "params_invalid"
    assert (await refusal(place, "SELECT :a")).code == "params_invalid"


async def test_rows_are_cut(place: str) -> None:
    answer = await ask(place, "SELECT seq FROM shop.seq_1_to_100000000", max_rows=2)
    assert (answer.rows, answer.cut, answer.affected) == ([{"seq": 1}, {"seq": 2}], "rows", None)
    answer = await ask(place, "SELECT repeat('x', 100000) FROM seq_1_to_1000")
    assert answer.cut == "bytes"
    assert 30 < len(answer.rows) < 45


async def test_changes(place: str) -> None:
    change = "UPDATE orders SET name = :name WHERE id > 2"
    given = {"name": "x"}
    error = await refusal(place, change, parameters=given)
    assert (error.code, error.retryable) == ("sql_refused", False)
    assert (await ask(place, change, parameters=given, read_only=False)).affected == 3
    answer = await ask(place, "INSERT INTO orders (id) VALUES (6), (8) RETURNING id", read_only=False, max_rows=1)
    assert (answer.rows, answer.cut, answer.affected) == ([{"id": 6}], "rows", 2)
    assert (await ask(place, "SELECT 1", read_only=False)).affected == 0
    assert (await ask(place, "SELECT count(*) AS n FROM orders WHERE name = 'x'")).rows == [{"n": 3}]
    error = await refusal(place, "INSERT INTO orders (id) VALUES (7), (1)", read_only=False)
    assert "Duplicate entry '1'" in error.message
    assert (await ask(place, "SELECT count(*) AS n FROM orders")).rows == [{"n": 7}]
    assert (await ask(place, "CREATE TABLE changed (a int)", read_only=False)).affected == 0
    assert (await ask(place, "CALL two(9)", read_only=False)).rows == [{"n": 7}]
    assert "Duplicate entry '1'" in (await refusal(place, "CALL two(1)", read_only=False)).message


REFUSED = (
    "COMMIT", "COMMIT; DELETE FROM orders", "SELECT 1; DELETE FROM orders", "SET GLOBAL max_connections = 1",
    "WITH gone AS (SELECT 1) DELETE FROM orders", "/*! DELETE FROM orders */", "/*M! DELETE FROM orders */",
    "SELECT 1 /*! ; DELETE FROM orders */", "CALL empty()", "ANALYZE DELETE FROM orders",
    "SELECT emptied()", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE orders",
    "CREATE TABLE changed (a int)", "SELECT NEXTVAL(s)", "KILL 1", "DO emptied()", "",
    "-- SELECT\nDELETE FROM orders",
)  # fmt: skip


async def test_reading_changes_nothing(place: str, server: Mariadb) -> None:
    with server.connect() as link, link.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE SEQUENCE s")
        cursor.execute(
            """CREATE OR REPLACE PROCEDURE empty() BEGIN
              COMMIT; START TRANSACTION READ WRITE; DELETE FROM orders; COMMIT; END"""
        )
        cursor.execute("CREATE OR REPLACE FUNCTION emptied() RETURNS int BEGIN DELETE FROM orders; RETURN 1; END")
    for query in REFUSED:
        assert (await refusal(place, query)).code in ("sql_refused", "sql_failed"), query
        assert (await ask(place, "(SELECT count(*) AS n FROM orders)")).rows == [{"n": 5}], query


async def test_errors(place: str) -> None:
    error = await refusal(place, "SELECT nam FROM orders")
    assert error.message.startswith("the database refused the query: Unknown column 'nam' in ")
    wrong = place.replace(f"{USER}:", f"{USER}:x")
    assert (await refusal(wrong, "SELECT 1")).code == "sql_login"
    assert (await refusal(address_of(1), "SELECT 1")).code == "sql_connection"
    assert (await refusal(place, "SELECT 1", allowed=["10.0.0.0/8"])).code == "address_refused"
    with bound_to({"REPORTS": Rules(["other.example"])}):
        assert (await refusal(place, "SELECT 1")).code == "secret_host_refused"
    bare = f"mysql://{HOST}:{place.rpartition(':')[2]}"
    assert (await ask(bare, "SELECT 1 AS n", login=Login(USER, PASSWORD))).rows == [{"n": 1}]


async def test_tls(place: str, server: Mariadb) -> None:
    cipher = "SHOW STATUS LIKE 'Ssl_cipher'"
    for more, is_secure in (
        ("", True), ("?ssl-mode=DISABLED", False), ("?ssl-mode=required", True),
        (f"?ssl-mode=VERIFY_IDENTITY&ssl-ca={server.ca}", True),
    ):  # fmt: skip
        assert bool((await ask(place + more, cipher)).rows[0]["Value"]) is is_secure, more
    error = await refusal(place + "?ssl-mode=VERIFY_IDENTITY", "SELECT 1")
    assert error.code == "sql_connection" and "certificate" in error.message.lower()
    elsewhere = place.replace(HOST, "127.0.0.1") + f"?ssl-mode=VERIFY_IDENTITY&ssl-ca={server.ca}"
    with pytest.raises(BlockError, match="certificate"):
        await Databases(GuardedClient(["127.0.0.1"])).ask(elsewhere, Query("SELECT 1"), run="a test")


async def test_a_query_that_takes_too_long(place: str) -> None:
    for read_only in (True, False):
        error = await refusal(place, "SELECT SLEEP(600)", timeout_s=1, read_only=read_only)
        assert (error.code, error.retryable) == ("sql_timeout", False)


async def test_a_cancelled_query_ends_on_the_server(place: str) -> None:
    running = asyncio.create_task(ask(place, "SELECT SLEEP(600)", timeout_s=300))
    await until(place, sleeping=True)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(place, sleeping=False)


async def test_a_lost_commit_is_unknown_and_a_lost_query_is_not(place: str, server: Mariadb) -> None:
    armed = threading.Event()
    armed.set()
    async with in_front_of(server.port, lambda data: data.endswith(b"\x03COMMIT") and armed.is_set()) as port:
        lossy = address_of(port, "?ssl-mode=DISABLED")
        with pytest.raises(Lost, match="while the change was committed"):
            await ask(lossy, "INSERT INTO orders (id) VALUES (9)", read_only=False)
        assert (await ask(place, "SELECT count(*) AS n FROM orders WHERE id = 9")).rows == [{"n": 1}]

    async def killed(query: str, outcome: Callable[[str], Awaitable[Any]]) -> Any:
        running = asyncio.ensure_future(outcome(query))
        await until(place, sleeping=True)
        with server.connect() as link, link.cursor() as cursor:
            cursor.execute(f"SELECT id {SLEEPING}")
            cursor.execute(f"KILL {cursor.fetchone()[0]}")
        return await running

    async def refused(query: str) -> BlockError:
        return await refusal(place, query, read_only=False)

    async def lost(query: str) -> None:
        with pytest.raises(Lost, match="may have changed something"):
            await ask(place, query, read_only=False)

    error = await killed("INSERT INTO orders (id) SELECT 10 + SLEEP(600)", refused)
    assert (error.code, error.retryable) == ("sql_connection", True)
    await killed("CREATE TABLE changed AS SELECT SLEEP(600) AS n", lost)


@pytest.mark.parametrize(
    "address",
    [
        "mysql:///shop", "mysql://u@/shop", "mysql://reports.example/shop", "mysql://u@%2Ftmp%2Fs/shop",
        "mysql://u@a.example,b.example/shop", "mysql://u:secret@reports.example:x/shop",
        "mysql://u:secret@reports.example/shop?read_default_file=/etc/passwd", "mysql://u@reports.example/shop?nonsense",
        "mysql://u:a?secret@reports.example/shop",
        "mysql://u@reports.example/shop?ssl-mode=some", "mysql://u@reports.example/shop?ssl-ca=/no/such/file",
        "mysql://u@reports.example/shop?ssl-mode=DISABLED&ssl-ca=/etc/hostname",
    ],
)  # fmt: skip
async def test_addresses_that_lead_elsewhere_are_refused(address: str) -> None:
    error = await refusal(address, "SELECT 1")
    assert error.code == "params_invalid"
    assert "secret" not in error.message

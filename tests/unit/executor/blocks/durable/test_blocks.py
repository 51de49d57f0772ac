"""`weft.http`, `email` and `sql` in durable functions, and in workflow functions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.open.embed import open_engine
from executor.open.testing.engines import engine, settled
from executor.open.testing.play import finish
from tests.support.endpoints import Request, answer, http

asked: list[Request] = []


@weft.durable
async def order(url: str) -> list[Any]:
    page = await weft.http(url, query={"id": 7})
    await weft.sleep(days=1)
    sent = await weft.http(url, method="POST", body={"paid": page.body})
    mail = await weft.email("Ada <ada@example.org>", "Sent", sent.body, cc=["b@example.org"])
    return [page.status, sent.body, mail.to, mail.refused]


@weft.durable
async def stored(database: str) -> list[Any]:
    await weft.sql(database, "INSERT INTO parts VALUES (:name)", {"name": "wheel"}, read_only=False)
    return (await weft.sql(database, "SELECT name FROM parts")).rows


@weft.durable
async def refused(url: str) -> str:
    try:
        await weft.http(url)
    except weft.StepFailed as error:
        return error.code
    return "none"


@weft.durable
async def misspelled(url: str) -> None:
    await weft.http(url, metod="GET")


@weft.workflow
async def drawn(url: str) -> Any:
    page = await weft.http(url)
    rows = await weft.sql("shop", "SELECT 1")
    found = await weft.agent("dev:m", page.body, output=list[str])
    return await weft.email("ada@example.org", "Found", [found, rows.rows])


@pytest.fixture(autouse=True)
def _nothing_asked() -> Iterator[None]:
    asked.clear()
    yield


def shop(request: Request) -> Any:
    asked.append(request)
    return answer(200, request.body or b"3", content_type="application/json")


async def test_requests_and_mails_are_steps() -> None:
    async with http(shop) as server, engine(workflows=[order], allow_private=[server.place]) as opened:
        run = (await opened.submit(order, url=server.url)).run
        view = await finish(opened, run)
        events = [one.data async for one in opened.stream(run) if one.type == "step.started"]
    assert (view.status, view.output) == ("succeeded", [200, {"paid": 3}, ["ada@example.org", "b@example.org"], []])
    assert [one.method for one in asked] == ["GET", "POST"], "the entry after the pause asked nothing again"
    effects = [(one["name"], one["effect"]) for one in events if one["kind"] == "step"]
    assert effects == [("http", "read"), ("http", "write"), ("email", "write")]


async def test_a_key_of_its_own_for_each_request() -> None:
    async with http(shop) as server, engine(workflows=[order], allow_private=[server.place]) as opened:
        for _ in range(2):
            await finish(opened, (await opened.submit(order, url=server.url)).run)
    keys = {one.headers["idempotency-key"] for one in asked if one.method == "POST"}
    assert len(keys) == 2


@weft.durable
async def asks_the_bank(url: str) -> Any:
    return await weft.callback(send={"url": url, "body": {"amount": 3}})


async def test_a_callback_sends_its_address() -> None:
    async with http(shop) as server, engine(workflows=[asks_the_bank], allow_private=[server.place]) as opened:
        run = (await opened.submit(asks_the_bank, url=server.url)).run
        await settled(opened)
        (request,) = asked
        body = json.loads(request.body)
        assert (request.method, body["amount"]) == ("POST", 3)
        await opened.callbacks.receive(body["callback_url"].rpartition("/")[2], {"paid": 1}, {})
        assert (await finish(opened, run)).output == {"paid": 1}


async def test_a_database(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE parts (name TEXT)")
    async with open_engine(workflows=[stored], sqlite_folders=[tmp_path]) as opened:
        run = await opened.run(stored, database="shop.db", timeout_s=60)
    assert (run.status, run.output) == ("succeeded", [{"name": "wheel"}]), run.error


async def test_errors_are_those_of_the_block() -> None:
    async with (
        http(lambda request: answer(404)) as server,
        engine(workflows=[refused, misspelled], allow_private=[server.place]) as opened,
    ):
        run = await opened.run(refused, url=server.url, timeout_s=60)
        assert run.output == "http_status"
        run = await opened.run(misspelled, url=server.url, timeout_s=60)
    assert run.error is not None
    assert run.error["message"].endswith("weft.http has no argument 'metod'. Did you mean \"method\"?")


def test_drawn_they_are_blocks() -> None:
    blocks = drawn.document()["blocks"]
    assert {name: block["type"] for name, block in blocks.items() if name != "start"} == {
        "http": "http", "sql": "sql", "agent": "agent", "email": "email",
    }  # fmt: skip
    assert blocks["email"]["params"]["body"] == ["<agent.content.answer>", "<sql.rows>"]

"""Another secret key: every open question can be answered, and what was made with the key before ends in time."""

from __future__ import annotations

import hashlib
import hmac
import time
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from executor.errors import NotFound, WrongKey
from executor.kernel.run.links import key_id
from executor.kernel.store.sqlite.reading import open_reading
from executor.open.engine import Engine
from executor.service.triggers.requests import sign
from executor.service.upkeep.doctor import examine
from executor.service.upkeep.findings import Evidence
from server.app import build_engine
from server.keys import read_secret
from server.settings import Settings
from tests.support.application import application
from tests.support.documents import ASKING, document
from tests.support.endpoints import answer as http_answer
from tests.support.endpoints import http
from tests.support.runs import settled
from tests.support.until import until

OLD, NEW = "a first secret key", "a second secret key"
DAY_MS = 86_400_000
Json = dict[str, Any]


def server(
    tmp_path: Path, key: str, old: str | None = None, **more: Any
) -> AbstractAsyncContextManager[tuple[Engine, httpx.AsyncClient]]:
    return application(Settings(db_path=str(tmp_path / "weft.db"), secret_key=key, old_secret_key=old, **more))


async def asking(engine: Engine) -> tuple[str, str]:
    """A run that asks, and its link."""
    run = (await engine.submit(ASKING)).run
    [wait] = (await settled(engine, run)).waits
    assert wait.link is not None
    return run, wait.link


async def links(client: httpx.AsyncClient) -> list[str]:
    waits = (await client.get("/api/waits?limit=1000&kind=approval")).json()["waits"]
    return [wait["link"] for wait in waits]


async def works(client: httpx.AsyncClient, link: str) -> bool:
    return (await client.get(f"/api{urlsplit(link).path}")).status_code == 200


async def test_all_open_questions_are_answered_after_a_change(tmp_path: Path) -> None:
    async with server(tmp_path, OLD) as (engine, client):
        runs = [await asking(engine) for _ in range(120)]  # more than are changed at once
        assert len(await links(client)) == 120
    async with server(tmp_path, NEW, OLD) as (engine, client):
        assert sorted(await links(client)) == sorted(link for _, link in runs), "before rekey the old links are shown"
        assert [await works(client, link) for link in await links(client)] == [True] * 120
        assert (await client.post("/api/secrets/rekey?grace_s=60")).json() == {"resealed": 0, "relinked": 120}
        shown = await links(client)
        assert not {link for _, link in runs} & set(shown)
        assert [await works(client, link) for link in shown] == [True] * 120
        assert (await client.post("/api/secrets/rekey?grace_s=60")).json()["relinked"] == 0
    async with server(tmp_path, NEW) as (engine, client):
        for link in (shown[0], runs[-1][1]):  # a new one, and one that was sent before
            assert await works(client, link)
            sent = await client.post(f"/api{urlsplit(link).path}", json={"action": "yes"})
            assert sent.status_code == 200, sent.text
        assert (await settled(engine, runs[-1][0])).status == "succeeded"


async def test_old_links_end_with_their_time_and_at_once_without_one(tmp_path: Path) -> None:
    async with server(tmp_path, OLD) as (engine, _):
        _, link = await asking(engine)
    async with server(tmp_path, NEW, OLD) as (engine, client):
        await client.post("/api/secrets/rekey?grace_s=86400")
        now_ms = engine.parts.clock.now_ms()
        engine.parts.clock.now_ms = lambda: now_ms + DAY_MS - 60_000
        assert await works(client, link)
        engine.parts.clock.now_ms = lambda: now_ms + DAY_MS + 60_000
        assert not await works(client, link)
        with pytest.raises(NotFound):
            await engine.answer(link, {}, "yes")
        engine.parts.clock.now_ms = lambda: now_ms
        assert await works(client, link)
        await client.post("/api/secrets/rekey?grace_s=0")
        assert not await works(client, link)
        [shown] = await links(client)
        assert await works(client, shown)


async def test_webhooks_pages_and_signatures_have_the_same_time(tmp_path: Path) -> None:
    hook = document(
        "orders", "in out", blocks={"in": {"type": "webhook"}, "out": {"type": "set", "params": {"value": 1}}}
    )
    del hook["blocks"]["start"]
    page = document("shop", "in out", blocks={"in": {"type": "chat_trigger"}, "out": {"type": "response"}})
    del page["blocks"]["start"]
    async with server(tmp_path, OLD) as (engine, client):
        for each in (hook, page):
            saved = await client.post("/api/workflows", json=each)
            assert saved.status_code == 201, saved.text
        secret = (await client.get("/api/webhooks/orders:in")).json()["secret"]
        address = urlsplit((await client.get("/api/webhooks/chat:shop:in")).json()["url"]).path

    async def statuses(client: httpx.AsyncClient, count: int) -> list[int]:
        body = b'{"n":%d}' % count
        at_s = int(time.time())
        signed = {"x-weft-timestamp": str(at_s), "x-weft-signature": sign(secret, body, at_s)}
        headers = {"content-type": "application/json", "x-weft-delivery": f"d-{count}", **signed}
        sent = await client.post("/hooks/orders:in", content=body, headers=headers)
        return [sent.status_code, (await client.get(address)).status_code]

    async with http(lambda _: http_answer(204)) as receiver:
        async with server(tmp_path, NEW, OLD, allow_private=(receiver.place,)) as (engine, client):
            assert await statuses(client, 1) == [202, 303]
            await client.post("/api/secrets/rekey?grace_s=60")
            assert await statuses(client, 2) == [202, 303]
            notified = document(
                "pay", "start ask",
                blocks={"ask": {"type": "approval", "params": {"notify": {"webhook": f"{receiver.url}/x"}}}},
            )  # fmt: skip
            run = (await engine.submit(notified)).run
            await settled(engine, run)
            await until(lambda: receiver.seen)
            [request] = receiver.seen
            assert _signed(request, OLD) == request.headers["x-weft-signature"], "receivers know this key"
            assert _signed(request, NEW) == request.headers["x-weft-signature-new"]
            await client.post("/api/secrets/rekey?grace_s=0")
            assert await statuses(client, 3) == [401, 404]
            new = (await client.get("/api/webhooks/chat:shop:in")).json()["url"]
            assert (await client.get(urlsplit(new).path)).status_code == 303
        async with server(tmp_path, NEW, OLD) as (engine, client):
            assert await statuses(client, 4) == [401, 404], "also in a process that has the key yet"


def _signed(request: Any, key: str) -> str:
    secret = read_secret(Settings(secret_key=key))
    signing = hmac.new(secret, b"notifications", hashlib.sha256).digest()
    signed = request.headers["x-weft-timestamp"].encode() + b"." + request.body
    return "v1=" + hmac.new(signing, signed, hashlib.sha256).hexdigest()


async def test_a_process_with_another_key_does_not_start(tmp_path: Path) -> None:
    async with server(tmp_path, OLD) as (engine, _):
        _, link = await asking(engine)
    for work in (True, False):
        settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a mistyped secret key")
        with pytest.raises(WrongKey) as refused:
            await build_engine(settings, work=work)
        assert "WEFT_OLD_SECRET_KEY" in refused.value.hint
    async with server(tmp_path, NEW, OLD) as (_, client):
        await client.post("/api/secrets/rekey")
    with pytest.raises(WrongKey):
        await build_engine(Settings(db_path=str(tmp_path / "weft.db"), secret_key=OLD))
    async with server(tmp_path, "a third secret key", "lost") as (_, client):
        assert not await works(client, link)
        [shown] = await links(client)
        assert await works(client, shown)


async def test_doctor_names_a_key_that_is_not_that_of_the_database(tmp_path: Path) -> None:
    async with server(tmp_path, OLD):
        pass
    found = {}
    for name, keys in {"same": (OLD,), "begun": (NEW, OLD), "other": (NEW,)}.items():
        known = [key_id(read_secret(Settings(secret_key=key))) for key in keys]
        with closing(open_reading(tmp_path / "weft.db")) as reading:
            report = examine(reading, reading.clock_ms(), evidence=Evidence(keys=known))
        found[name] = next(condition for condition in report.conditions if condition.name == "key")
    assert {name: condition.level for name, condition in found.items()} == {
        "same": "ok",
        "begun": "warning",
        "other": "error",
    }
    assert "weft secret rekey" in found["begun"].fix and "no process can start" in found["other"].what


async def test_a_database_of_before_takes_the_key_of_its_first_start(tmp_path: Path) -> None:
    async with server(tmp_path, OLD) as (engine, _):
        _, link = await asking(engine)
        await engine.store._writer.submit(lambda tx: tx.run("DELETE FROM secret_keys"))
    async with server(tmp_path, OLD) as (_, client):
        assert await works(client, link)
    with pytest.raises(WrongKey):
        await build_engine(Settings(db_path=str(tmp_path / "weft.db"), secret_key=NEW))


async def test_who_has_signed_in_needs_no_link(tmp_path: Path) -> None:
    async with server(tmp_path, OLD) as (engine, _):
        run, link = await asking(engine)
    async with server(tmp_path, NEW, "lost") as (engine, client):
        assert not await works(client, link)
        sent = await client.post(f"/api/runs/{run}/waits/ask", json={"action": "yes"})
        assert sent.status_code == 200, sent.text
        assert sent.json()["answered_by"] is None  # a server without a token knows no one's name
        assert (await settled(engine, run)).status == "succeeded"

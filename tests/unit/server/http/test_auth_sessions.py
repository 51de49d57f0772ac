"""Sessions are rows, new at each sign-in, that end; guesses at the token are slowed down."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.open.engine import Engine
from server.app import create_app
from server.http.auth import Auth
from server.http.credentials import AGE_MS, IDLE_MS, SEE_EVERY_MS
from server.http.errors import TooManyTries
from server.http.rates import LOGINS, LOGINS_IN_ALL, Rates
from server.settings import Settings
from tests.unit.server.conftest import BASE

TOKEN = {"token": "the-token"}


@pytest.fixture
def closed(settings: Settings, engine: Engine) -> Starlette:
    return create_app(replace(settings, token="the-token"), engine)


@pytest.fixture
async def browser(closed: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as client:
        yield client


@pytest.fixture
async def other(closed: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as client:
        yield client


async def sign_in(client: httpx.AsyncClient, **how: str) -> str:
    """Returns the value of the cookie."""
    answer = await client.post("/login", json=how or TOKEN)
    assert answer.status_code == 200, answer.text
    return client.cookies["weft_8765"]


async def status(client: httpx.AsyncClient) -> int:
    return (await client.get("/api/runs")).status_code


async def test_each_sign_in_is_a_new_session_of_this_port(browser: httpx.AsyncClient) -> None:
    first = await sign_in(browser)
    set_cookie = (await browser.post("/login", json=TOKEN)).headers["set-cookie"]
    assert set_cookie.startswith("weft_8765=") and browser.cookies["weft_8765"] != first
    assert "HttpOnly" in set_cookie and "SameSite=strict" in set_cookie and f"Max-Age={AGE_MS // 1000}" in set_cookie
    assert await status(browser) == 200
    browser.cookies.clear()
    assert (await browser.get("/api/runs", headers={"cookie": f"weft_8765={first}"})).status_code == 401


async def test_the_database_has_the_hash_alone(browser: httpx.AsyncClient, engine: Engine) -> None:
    value = await sign_in(browser)
    assert await engine.store.get_session(value) is None
    row = await engine.store.get_session(hashlib.sha256(value.encode()).hexdigest())
    assert row is not None and value not in repr(row) and len(value) >= 43  # 256 bits


async def test_signing_out_ends_the_session_on_the_server(browser: httpx.AsyncClient) -> None:
    value = await sign_in(browser)
    assert (await browser.get("/api/version")).json()["signed_in"] is True
    left = await browser.post("/logout")
    assert left.status_code == 200 and "weft_8765" not in browser.cookies
    assert (await browser.get("/api/runs", headers={"cookie": f"weft_8765={value}"})).status_code == 401
    assert (await browser.post("/logout")).status_code == 200  # nothing to end is fine


async def test_all_sessions_can_be_ended(browser: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    await sign_in(browser)
    await sign_in(other)
    ended = await other.delete("/api/sessions")
    assert (ended.status_code, ended.json()) == (200, {"ended": 2})
    assert await status(browser) == 401 and await status(other) == 401
    assert (await other.delete("/api/sessions")).status_code == 401


@pytest.mark.parametrize("idle", [True, False])
async def test_a_session_ends_when_idle_and_in_all(
    browser: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch, idle: bool
) -> None:
    began_ms = now_ms = engine.parts.clock.now_ms()
    monkeypatch.setattr(type(engine.parts.clock), "now_ms", lambda self: now_ms)
    await sign_in(browser)
    if idle:
        now_ms += IDLE_MS - 1
        assert await status(browser) == 200  # and it has been seen
        now_ms += IDLE_MS
        assert await status(browser) == 401
        return
    while now_ms + IDLE_MS < began_ms + AGE_MS:
        now_ms += IDLE_MS - 1
        assert await status(browser) == 200
    now_ms = began_ms + AGE_MS - 1
    assert await status(browser) == 200
    now_ms += 1
    assert await status(browser) == 401


async def test_a_session_in_use_is_written_once_a_minute(
    browser: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = engine.parts.clock.now_ms()
    monkeypatch.setattr(type(engine.parts.clock), "now_ms", lambda self: now_ms)
    await sign_in(browser)
    seen: list[int] = []
    see = engine.store.see_session

    async def note(hash: str, at_ms: int) -> None:
        seen.append(at_ms)
        await see(hash, at_ms)

    monkeypatch.setattr(engine.store, "see_session", note)
    for _ in range(6):
        now_ms += SEE_EVERY_MS // 2
        assert await status(browser) == 200
    assert len(seen) == 3


async def test_a_stream_ends_with_the_session_that_opened_it(
    browser: httpx.AsyncClient, closed: Starlette, engine: Engine, asking: dict[str, Any]
) -> None:
    """Signed out elsewhere, by another process on the same database: a look finds it."""
    await sign_in(browser)
    run = (await browser.post("/api/runs?wait=60", json={"document": asking})).json()["run"]
    streams, auth = closed.state.streams, closed.state.auth
    assert isinstance(auth, Auth)
    following = asyncio.create_task(browser.get(f"/api/runs/{run}/events"))
    async with asyncio.timeout(60):
        while not streams.sessions:
            await asyncio.sleep(0.01)
        await auth.end_streams(streams, engine)
        assert not following.done() and len(streams) == 1
        await engine.store.delete_sessions()
        await auth.end_streams(streams, engine)
        assert (await following).status_code == 200
    assert len(streams) == 0 and not streams.sessions


async def test_signing_out_here_ends_the_streams_at_once(
    browser: httpx.AsyncClient, closed: Starlette, asking: dict[str, Any]
) -> None:
    await sign_in(browser)
    run = (await browser.post("/api/runs?wait=60", json={"document": asking})).json()["run"]
    following = asyncio.create_task(browser.get(f"/api/runs/{run}/events"))
    async with asyncio.timeout(60):
        while not closed.state.streams.sessions:
            await asyncio.sleep(0.01)
        await browser.post("/logout")
        await following


async def test_a_link_signs_in_once(browser: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    made = await browser.post("/api/sign-in-links", headers={"authorization": "Bearer the-token"})
    assert made.status_code == 201 and made.json()["expires_in_s"] == 600
    page, _, code = made.json()["url"].partition("#")
    assert page == f"{BASE}/sign-in" and len(code) >= 43
    assert (await browser.get("/sign-in")).status_code == 200
    await sign_in(browser, code=code)
    assert await status(browser) == 200
    again = await other.post("/login", json={"code": code})
    assert again.status_code == 401 and "weft link" in again.json()["hint"]
    assert (await other.post("/api/sign-in-links")).status_code == 401
    assert (await other.post("/login", json={})).status_code == 422


async def test_guesses_are_slowed_down(browser: httpx.AsyncClient, closed: Starlette) -> None:
    """It took 547 a second."""
    now_s = 0.0
    closed.state.auth.rates = Rates(lambda: now_s)
    for n in range(LOGINS):
        assert (await browser.post("/login", json={"token": f"guess {n}"})).status_code == 401
    slowed = await browser.post("/login", json={"token": "guess"})
    assert (slowed.status_code, slowed.json()["code"]) == (429, "too_many_tries")
    assert slowed.headers["retry-after"] == "6"
    now_s += 6.0
    assert (await browser.post("/login", json={"token": "guess"})).status_code == 401


def test_guesses_from_many_addresses_are_slowed_down() -> None:
    rates = Rates(lambda: 0.0)
    for n in range(LOGINS_IN_ALL):
        rates.login_missed(f"10.0.0.{n}")
    with pytest.raises(TooManyTries, match="Too many sign-in attempts"):
        rates.login_missed("10.0.1.1")


@pytest.mark.parametrize("addresses", ["one", "many"])
async def test_no_guesses_keep_out_who_has_the_token_or_a_link(
    browser: httpx.AsyncClient, closed: Starlette, addresses: str
) -> None:
    closed.state.auth.rates = rates = Rates(lambda: 0.0)
    made = await browser.post("/api/sign-in-links", headers={"authorization": "Bearer the-token"})
    if addresses == "many":
        for n in range(LOGINS_IN_ALL):
            rates.login_missed(f"10.0.0.{n}")
    while (await browser.post("/login", json={"token": "guess"})).status_code != 429:
        pass
    for _ in range(LOGINS_IN_ALL):
        assert (await browser.post("/login", json={"code": "c" * 43})).status_code == 401, "256 bits: no guess"
    await sign_in(browser, code=made.json()["url"].partition("#")[2])
    assert await status(browser) == 200
    for _ in range(LOGINS + 1):
        assert (await browser.post("/login", json=TOKEN)).status_code == 200

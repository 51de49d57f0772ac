from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.requests import Request
from starlette.responses import Response

from executor.open.engine import Engine
from server.http.auth import CODE_S, Auth
from server.http.errors import Unauthorized
from server.settings import Settings

SECRET = b"s" * 32


def request(engine: Engine | None = None, **headers: str) -> Request:
    app = SimpleNamespace(state=SimpleNamespace(engine=engine))
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw, "app": app})


async def cookie(auth: Auth, engine: Engine, token: str) -> str:
    response = Response()
    await auth.sign_in(engine, token, None, response)
    return response.headers["set-cookie"].partition(";")[0]


async def test_without_a_token_everybody_may() -> None:
    assert await Auth(Settings(), SECRET).allows(request())


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer tokex", "Bearer token2", "Basic token", "token", "Bearer t\xf6ken"]
)
async def test_only_the_exact_token_opens(header: str) -> None:
    auth = Auth(Settings(token="token"), SECRET)
    assert not await auth.allows(request(authorization=header))
    with pytest.raises(Unauthorized):
        await auth.require(request(authorization=header))
    assert await auth.allows(request(authorization="Bearer token"))


async def test_a_session_ends_with_token_or_secret(engine: Engine) -> None:
    auth = Auth(Settings(token="token"), SECRET)
    held = await cookie(auth, engine, "token")
    assert await auth.allows(request(engine, cookie=held))
    assert not await Auth(Settings(token="other"), SECRET).allows(request(engine, cookie=held))
    assert not await Auth(Settings(token="token"), b"t" * 32).allows(request(engine, cookie=held))
    assert not await auth.allows(request(engine, cookie=f"{auth.cookie}=token"))
    assert await auth.allows(request(engine, cookie=held))


async def test_the_cookie_is_secure_behind_https(engine: Engine) -> None:
    auth, response = Auth(Settings(token="token", public_url="https://weft.example"), SECRET), Response()
    await auth.sign_in(engine, "token", None, response)
    told = response.headers["set-cookie"]
    assert told.startswith("__Host-weft=") and "Secure" in told and "Path=/;" in told and "Domain" not in told


async def test_a_code_counts_once_and_for_ten_minutes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    auth, now_ms = Auth(Settings(token="token"), SECRET), engine.parts.clock.now_ms()

    async def redeem(link: str) -> bool:
        try:
            await auth.sign_in(engine, None, link.partition("#")[2], Response())
        except Unauthorized:
            return False
        return True

    monkeypatch.setattr(engine.parts.clock, "now_ms", lambda: now_ms)
    first, second, third = [await auth.link(engine) for _ in range(3)]
    assert await redeem(first) and not await redeem(first)
    now_ms += CODE_S * 1000 - 1
    assert await redeem(second)
    now_ms += 1
    assert not await redeem(third)
    assert not await redeem("") and not await redeem("#guess")

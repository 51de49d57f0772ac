from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.requests import Request
from starlette.responses import Response

from executor.engine import Engine
from server.http.auth import CODE_S, CODES_MAX, Auth, Codes
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


def test_a_code_counts_once_and_for_ten_minutes() -> None:
    now_s = 0.0
    codes = Codes(lambda: now_s)
    first, second, third = codes.make(), codes.make(), codes.make()
    assert codes.redeem(first) and not codes.redeem(first)
    now_s = CODE_S - 1.0
    assert codes.redeem(second)
    now_s = float(CODE_S)
    assert not codes.redeem(third)
    assert not codes.redeem("") and not codes.redeem("guess")


def test_the_number_of_stored_codes_is_bounded() -> None:
    codes = Codes(lambda: 0.0)
    made = [codes.make() for _ in range(CODES_MAX + 1)]
    assert not codes.redeem(made[0]) and codes.redeem(made[1]) and codes.redeem(made[-1])

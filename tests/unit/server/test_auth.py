from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import Response

from server.auth import COOKIE, Auth
from server.errors import Unauthorized
from server.settings import Settings

SECRET = b"s" * 32


def request(**headers: str) -> Request:
    return Request(
        {"type": "http", "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]}
    )


def test_without_a_token_everybody_may() -> None:
    assert Auth(Settings(), SECRET).allows(request())


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer tokex", "Bearer token2", "Basic token", "token", "Bearer t\xf6ken"]
)
def test_only_the_exact_token_opens(header: str) -> None:
    auth = Auth(Settings(token="token"), SECRET)
    assert not auth.allows(request(authorization=header))
    with pytest.raises(Unauthorized):
        auth.require(request(authorization=header))
    assert auth.allows(request(authorization="Bearer token"))


def test_a_session_ends_with_token_or_secret() -> None:
    def session(token: str, secret: bytes) -> str:
        response = Auth(Settings(token=token), secret).log_in(token, Response())
        return response.headers["set-cookie"].partition(";")[0]

    auth = Auth(Settings(token="token"), SECRET)
    assert auth.allows(request(cookie=session("token", SECRET)))
    assert not auth.allows(request(cookie=session("other", SECRET)))
    assert not auth.allows(request(cookie=session("token", b"t" * 32)))
    assert not auth.allows(request(cookie=f"{COOKIE}=token"))


def test_the_cookie_is_secure_behind_https() -> None:
    response = Auth(Settings(token="token", public_url="https://weft.example"), SECRET).log_in("token", Response())
    assert "Secure" in response.headers["set-cookie"]

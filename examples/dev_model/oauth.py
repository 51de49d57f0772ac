"""An OAuth 2 provider that agrees to everything, and a service that asks for its tokens: code with PKCE, tokens of a
minute, and refresh tokens that count once. For the example of a connection."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Final, TypeVar
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

T = TypeVar("T")

KEPT: Final = 1000  # codes and tokens of each kind; the oldest go
SECONDS: Final = 60
FORM_BYTES_MAX: Final = 64 * 1024
ORDERS: Final = [{"number": "1042", "total": 15.0}, {"number": "1043", "total": 27.5}]


class OAuth:
    """In memory: it forgets everything when it ends."""

    def __init__(self) -> None:
        self._challenges: dict[str, str] = {}
        self._access: dict[str, bool] = {}
        self._refresh: dict[str, bool] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/oauth/authorize", self._authorize),
            Route("/oauth/token", self._token, methods=["POST"]),
            Route("/oauth/orders", self._orders),
        ]

    async def _authorize(self, request: Request) -> Response:
        """A real provider would ask the person here."""
        asked = request.query_params
        to, challenge = asked.get("redirect_uri", ""), asked.get("code_challenge", "")
        if (
            not to.startswith(("http://127.0.0.1:", "http://localhost:"))
            or asked.get("code_challenge_method") != "S256"
        ):
            return JSONResponse({"error": "invalid_request"}, 400)
        code = _keep(self._challenges, challenge)
        return RedirectResponse(f"{to}?{urlencode({'code': code, 'state': asked.get('state', '')})}", 302)

    async def _token(self, request: Request) -> Response:
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > FORM_BYTES_MAX:
                return JSONResponse({"error": "invalid_request"}, 400)
        form = {name: values[0] for name, values in parse_qs(data.decode("utf-8", "replace")).items()}
        if form.get("grant_type") == "authorization_code":
            hashed = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(hashed).decode().rstrip("=")
            permitted = self._challenges.pop(form.get("code", ""), None) == challenge
        else:
            permitted = self._refresh.pop(form.get("refresh_token", ""), False)
        if not permitted:
            return JSONResponse({"error": "invalid_grant"}, 400)
        tokens = {"access_token": _keep(self._access, True), "refresh_token": _keep(self._refresh, True)}
        return JSONResponse({**tokens, "token_type": "Bearer", "expires_in": SECONDS})

    async def _orders(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self._access:
            return JSONResponse({"error": "the token is not valid"}, 401)
        return JSONResponse({"orders": ORDERS})


def _keep(kept: dict[str, T], value: T) -> str:
    """A new name for it."""
    while len(kept) >= KEPT:
        del kept[next(iter(kept))]
    name = secrets.token_urlsafe(24)
    kept[name] = value
    return name

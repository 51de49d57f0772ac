"""An OAuth 2 provider on 127.0.0.1, and a service that asks for its tokens: code with PKCE, client credentials, refresh
tokens that count once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.endpoints import Request, Server, answer, http

CLIENT_ID, CLIENT_SECRET = "weft-client", "secret of the client"


@dataclass
class Provider:
    """`rotates`: a refresh token counts once, and its second use ends the grant, as providers do that detect thieves.
    `expires_in`: seconds. `gate`: token requests wait for it. `refuses`: the error of every token request."""

    server: Server = field(default_factory=lambda: Server(""))
    redirect_uri: str = ""
    rotates: bool = True
    expires_in: int | None = 3600
    issuer: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    refuses: str = ""
    token_type: str = "Bearer"
    answers: bytes | None = None  # of every token request
    takes_none: bool = False  # the service refuses every token
    codes: dict[str, str] = field(default_factory=dict)  # with the challenge of each
    access: set[str] = field(default_factory=set)  # those that the service takes
    refresh: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)  # token requests
    seen: list[Request] = field(default_factory=list)  # at the service

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def place(self) -> str:
        return self.server.place

    def spec(self, **more: Any) -> dict[str, Any]:
        """Of a connection to it."""
        return {
            "kind": "oauth2_code", "hosts": [self.url], "secret": CLIENT_SECRET, "client_id": CLIENT_ID,
            "authorize_url": f"{self.url}/authorize", "token_url": f"{self.url}/token", "scopes": "read write",
            "issuer": self.url,
        } | more  # fmt: skip

    def sign_in(self, url: str) -> dict[str, str]:
        """What a browser does: a person agrees, and the provider sends it back with this query."""
        assert url.startswith(f"{self.url}/authorize?"), url
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["response_type"] == "code" and asked["client_id"] == CLIENT_ID
        assert asked["redirect_uri"] == self.redirect_uri or not self.redirect_uri
        assert asked.get("code_challenge_method", "S256") == "S256"
        code = secrets.token_urlsafe(12)
        self.codes[code] = asked.get("code_challenge", "")
        return {"code": code, "state": asked["state"], "iss": self.issuer or self.url}

    def back(self, url: str) -> str:
        """The same as an address."""
        return f"{self.redirect_uri}?{urlencode(self.sign_in(url))}"

    async def handle(self, request: Request) -> bytes:
        if request.target.partition("?")[0] != "/token":
            return self._service(request)
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        self.asked.append(form)
        await self.gate.wait()
        if self.answers is not None:
            return self.answers
        if self.refuses:
            return _json(400, {"error": self.refuses})
        if not self._is_client(request, form):
            return _json(401, {"error": "invalid_client"})
        match form.get("grant_type"):
            case "client_credentials":
                return self._tokens(refresh=False)
            case "authorization_code":
                challenge = ""
                if "code_verifier" in form:
                    hashed = hashlib.sha256(form["code_verifier"].encode()).digest()
                    challenge = base64.urlsafe_b64encode(hashed).decode().rstrip("=")
                if self.codes.pop(form["code"], None) != challenge:
                    return _json(400, {"error": "invalid_grant"})
                return self._tokens(refresh=True)
            case "refresh_token":
                used = form["refresh_token"]
                if used not in self.refresh:
                    if used in self.used:  # a second use: the grant ends
                        self.refresh.clear()
                    return _json(400, {"error": "invalid_grant"})
                if self.rotates:
                    self.refresh.discard(used)
                    self.used.add(used)
                return self._tokens(refresh=self.rotates)
        return _json(400, {"error": "unsupported_grant_type"})

    def _is_client(self, request: Request, form: dict[str, str]) -> bool:
        header = request.headers.get("authorization", "")
        if header.startswith("Basic "):
            both = base64.b64decode(header.removeprefix("Basic ")).decode()
            return both == f"{CLIENT_ID}:{CLIENT_SECRET.replace(' ', '%20')}"
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)

    def _tokens(self, refresh: bool) -> bytes:
        found: dict[str, Any] = {"access_token": f"access-{secrets.token_urlsafe(16)}", "token_type": self.token_type}
        self.access.add(found["access_token"])
        if self.expires_in is not None:
            found["expires_in"] = self.expires_in
        if refresh:
            found["refresh_token"] = f"refresh-{secrets.token_urlsafe(16)}"
            self.refresh.add(found["refresh_token"])
        return _json(200, found)

    def _service(self, request: Request) -> bytes:
        self.seen.append(request)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.takes_none or token not in self.access:
            return _json(401, {"error": "the token is not valid"})
        return _json(200, {"hello": "you", "your_token": token})


@asynccontextmanager
async def oauth_provider(**more: Any) -> AsyncIterator[Provider]:
    provider = Provider(**more)
    provider.gate.set()
    async with http(provider.handle) as server:
        provider.server = server
        yield provider


def _json(status: int, body: dict[str, Any]) -> bytes:
    return answer(status, json.dumps(body).encode(), content_type="application/json")

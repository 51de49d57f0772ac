"""A provider of OpenID Connect on a loopback address, with real keys, that can also be told to lie."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey

CLIENT_ID, CLIENT_SECRET = "weft-tests", "a secret/with: signs"
Change = Callable[[dict[str, Any]], None]


def rsa(kid: str, bits: int = 2048) -> RSAKey:
    return RSAKey.generate_key(bits, {"kid": kid, "use": "sig"})


def ec(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


class LocalProvider:
    """`person`: claims of who signs in. `change`: what is done to the claims before they are signed. `forge`: makes
    the token instead, from header and claims. `own`: its key at first. `asked`: the paths of requests. `signed_out`:
    subjects; `after_sign_out`: the addresses that are registered."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.own = rsa("one")
        self.keys: list[Key] = [self.own]
        self.signing: Key = self.own
        self.alg = "RS256"
        self.person: dict[str, Any] = {"sub": "ada", "email": "ada@example.com", "email_verified": True, "name": "Ada"}
        self.change: Change = lambda claims: None
        self.forge: Callable[[dict[str, Any], dict[str, Any]], str] | None = None
        self.described: dict[str, Any] = {}
        self.asked: list[str] = []
        self.is_down = False
        self.after_sign_out = ["http://127.0.0.1:8765/"]
        self.signed_out: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def authorize(self, url: str) -> str:
        """What a browser does: the address to which the provider sends it back."""
        query = dict(parse_qsl(urlsplit(url).query))
        assert query["response_type"] == "code" and query["code_challenge_method"] == "S256", query
        assert query["client_id"] == CLIENT_ID and "openid" in query["scope"].split()
        code = f"code-{len(self._codes)}"
        self._codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.issuer, "session_state": "x"}
        return f"{query['redirect_uri']}?{urlencode(back)}"

    def sign_out(self, url: str) -> str:
        """What a browser does that was sent there: the address to which the provider sends it back. It knows the client
        by the hint or by its id."""
        target, query = urlsplit(url), dict(parse_qsl(urlsplit(url).query))
        assert f"{target.scheme}://{target.netloc}{target.path}" == f"{self.issuer}/end_session_endpoint"
        hint = query.get("id_token_hint")
        if hint is not None:
            claims = jwt.decode(hint, self.signing, algorithms=[self.alg]).claims
            assert (claims["iss"], claims["aud"]) == (self.issuer, CLIENT_ID)
            self.signed_out.append(claims["sub"])
        assert query["client_id"] == CLIENT_ID
        assert query["post_logout_redirect_uri"] in self.after_sign_out, "not registered"
        return query["post_logout_redirect_uri"]

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        self.asked.append(path)
        if self.is_down:
            return 503, {"error": "down"}
        if path == "/.well-known/openid-configuration":
            own = {name: f"{self.issuer}/{name}" for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
            return 200, {"issuer": self.issuer, **own, **self.described}
        if path == "/jwks_uri":
            return 200, {"keys": [key.as_dict(private=False) for key in self.keys]}
        if path == "/token_endpoint":
            return self._token(form, authorization)
        return 404, {}

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        assert pair == "weft-tests:a%20secret%2Fwith%3A%20signs", pair
        asked = self._codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if _text(digest) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now_s = int(time.time())
        times = {"iat": now_s, "exp": now_s + 300}
        claims = {"iss": self.issuer, "aud": CLIENT_ID, **times, "nonce": asked["nonce"], **self.person}
        self.change(claims)
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": self._signed(claims)}

    def _signed(self, claims: dict[str, Any]) -> str:
        header = {"alg": self.alg, "kid": self.signing.kid}
        if self.forge is not None:
            return self.forge(header, claims)
        return jwt.encode(header, claims, self.signing, algorithms=[self.alg])


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """alg: none."""
    return f"{_part({**header, 'alg': 'none'})}.{_part(claims)}."


def signed_with_the_public_key(key: RSAKey) -> Callable[[dict[str, Any], dict[str, Any]], str]:
    """HS256, with what everyone knows as the secret."""
    secret = key.as_pem(private=False)

    def forge(header: dict[str, Any], claims: dict[str, Any]) -> str:
        signed = f"{_part({**header, 'alg': 'HS256'})}.{_part(claims)}"
        return f"{signed}.{_text(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"

    return forge


def _part(value: dict[str, Any]) -> str:
    return _text(json.dumps(value).encode())


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


@contextmanager
def local_provider() -> Iterator[LocalProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: dict[str, str]) -> None:
            status, value = provider.answer(self.path, form, self.headers.get("authorization", ""))
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = LocalProvider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

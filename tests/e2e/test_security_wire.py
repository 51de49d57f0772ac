"""What an attacker on the network, in another browser tab, or with a workflow of his own tries, against a real server.

The routes come from the route table: a new route is tried without anybody thinking of it.
"""

from __future__ import annotations

import asyncio
import base64
import http.server
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.open.engine import Engine
from executor.service.triggers.requests import sign
from server.api import TABLE
from server.http.security import FILE_FORM_PREFIXES
from server.http.table import RouteSpec
from tests.support.blocks import Speak
from tests.support.model_store.store import ModelStore
from tests.support.server import ROOT, SyncServerProcess

TOKEN = "a-token-of-the-server"
PUBLIC = {
    "/",
    "/api/resume/{token}",
    "/approvals",
    "/knowledge",
    "/knowledge/{id}",
    "/usage",
    "/loom/{id}",
    "/callbacks/{token}",
    "/chat/{name}/{token}",
    "/chat/{name}/{token}/{conversation}",
    "/chat/{name}/{token}/{conversation}/{n}/answer",
    "/chat/{name}/{token}/{conversation}/{n}/events",
    "/chat/{name}/{token}/{conversation}/{n}/stop",
    "/demo/echo",
    "/forms/{name}/{token}",
    "/healthz",
    "/hooks/{id}",
    "/login",
    "/logout",
    "/oidc/start",
    "/oidc/callback",
    "/sign-in",
    "/openapi.json",
    "/readyz",
    "/resume/{token}",
    "/runs",
    "/runs/{id}",
    "/settings",
    "/w/{id}",
}
# Other systems post here: any body is taken, and the credential is none that a browser would send along.
ANY_BODY = {"/callbacks/{token}", "/hooks/{id}"}
STREAM = {"accept": "text/event-stream"}
READING = ("GET", "HEAD")


def each(routes: list[RouteSpec]) -> Any:
    return pytest.mark.parametrize("route", routes, ids=lambda route: f"{route.method} {route.path}")


ALL = list(TABLE)
WRITES = [route for route in TABLE if route.method not in READING]
READS = [route for route in TABLE if route.method in READING]
WRITE_METHODS = {route.method for route in WRITES}
CLOSED = [route for route in TABLE if route.path not in PUBLIC]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    process = SyncServerProcess(tmp_path_factory.mktemp("wire"), {})
    yield process
    if process.running:
        process.kill()


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    """A server with a token."""
    process = SyncServerProcess(tmp_path_factory.mktemp("closed"), {"WEFT_TOKEN": TOKEN})
    yield process
    if process.running:
        process.kill()


@pytest.fixture(scope="module")
def asking() -> dict[str, Any]:
    fields = {"type": "object", "properties": {"note": {"type": "string"}}}
    return {
        "format": "weft/1",
        "name": "asking",
        "blocks": {
            "start": {"type": "start"},
            "ask": {"type": "approval", "params": {"title": "Go on?", "actions": ["yes"], "fields": fields}},
        },
        "edges": [{"source": "start", "target": "ask"}],
    }


@pytest.fixture(scope="module")
def names(server: SyncServerProcess, asking: dict[str, Any]) -> dict[str, str]:
    """What stands for the parameters of paths: things that exist."""
    with httpx.Client(base_url=server.url, timeout=90) as client:
        assert client.post("/api/workflows", json=asking).status_code == 201
        run = client.post("/api/runs?wait=60", json={"document": asking}).json()
        assert run["status"] == "waiting"
        (wait,) = client.get("/api/waits", params={"run": run["run"]}).json()["waits"]
        token = httpx.URL(wait["link"]).path.rpartition("/")[2]
    return {"{id}": run["run"], "{name}": "asking", "{token}": token, "{key}": "ask", "{other}": run["run"]} | {
        "{conversation}": "0123456789abcdef",
        "{n}": "1",
        "{service}": "tea",
        "{type}": "connector.slack",
        "{collection}": "letters",
    }


@pytest.fixture(scope="module", autouse=True)
def _close_client() -> Iterator[None]:
    yield
    _client.close()


_client = httpx.Client(timeout=90)


def path_of(route: RouteSpec, names: dict[str, str]) -> str:
    path = route.path
    for parameter, value in names.items():
        path = path.replace(parameter, value)
    assert "{" not in path, f"this test has no value for a parameter of {route.path}"
    return path


def ask(
    base: str, method: str, path: str, headers: dict[str, str] | None = None, content: bytes | None = None
) -> httpx.Response:
    """The response, of a stream only its head."""
    with _client.stream(method, base + path, headers=headers, content=content) as response:
        if response.status_code >= 400 or "event-stream" not in response.headers.get("content-type", ""):
            response.read()
        return response


# --- other names and other sites ---


@each(ALL)
def test_a_foreign_host_reaches_nothing(server: SyncServerProcess, names: dict[str, str], route: RouteSpec) -> None:
    port = httpx.URL(server.url).port
    body = None if route.method in READING else b"{}"
    media = {} if body is None else {"content-type": "application/json"}
    for host in ("evil.test", f"evil.test:{port}", f"127.0.0.1.evil.test:{port}", f"127.0.0.1:{port}@evil.test", ""):
        for accept in ("*/*", "text/event-stream", "text/html", "application/json"):
            headers = {"host": host, "accept": accept, **media}
            refused = ask(server.url, route.method, path_of(route, names), headers, body)
            assert refused.status_code in ((421,) if host else (400, 421)), (host, accept)


@each(WRITES)
def test_other_sites_cannot_write(server: SyncServerProcess, names: dict[str, str], route: RouteSpec) -> None:
    path = path_of(route, names)
    for foreign in (
        {"origin": "http://evil.test"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": server.url.replace("http://", "https://evil.test#")},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ):
        headers = {"content-type": "application/json", **foreign}
        refused = ask(server.url, route.method, path, headers, b"{}")
        assert (refused.status_code, refused.json()["code"]) == (403, "cross_site"), foreign


@each([route for route in WRITES if route.path not in ANY_BODY])
def test_json_as_plain_text_is_refused(server: SyncServerProcess, names: dict[str, str], route: RouteSpec) -> None:
    """A page of another site can send these three without asking first."""
    path = path_of(route, names)
    for media in ("text/plain", "text/plain; charset=utf-8", "multipart/form-data; boundary=x", None):
        headers = {"content-type": media} if media else {}
        refused = ask(server.url, route.method, path, headers, b'{"action": "yes"}')
        if media is not None and media.startswith("multipart") and route.path.startswith(FILE_FORM_PREFIXES):
            assert refused.status_code in (404, 422)  # it is no form with files
        else:
            assert (refused.status_code, refused.json()["code"]) == (415, "unsupported_media_type"), media
    form = ask(server.url, route.method, path, {"content-type": "application/x-www-form-urlencoded"}, b"a=1")
    of_pages = {
        "/resume/{token}": 422,
        "/forms/{name}/{token}": 404,
        "/chat/{name}/{token}/{conversation}": 404,
        "/chat/{name}/{token}/{conversation}/{n}/answer": 404,
        "/chat/{name}/{token}/{conversation}/{n}/stop": 404,
    }  # the names are of no form
    assert form.status_code == of_pages.get(route.path, 415)


@each(READS)
def test_streams_do_not_open_for_other_sites(
    server: SyncServerProcess, names: dict[str, str], route: RouteSpec
) -> None:
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "accept": "text/event-stream"}
    assert ask(server.url, route.method, path_of(route, names), foreign).status_code == 403


@each(ALL)
def test_there_are_no_cors_headers_and_pages_have_a_policy(
    server: SyncServerProcess, names: dict[str, str], route: RouteSpec
) -> None:
    path = path_of(route, names)
    asked = {"origin": "http://evil.test", "access-control-request-method": route.method}
    own = {"accept": "text/html", "content-type": "application/json"}
    for method, headers in (("OPTIONS", asked), ("OPTIONS", own), (route.method, own)):
        if method in WRITE_METHODS:
            headers = {**headers, "content-type": "text/plain"}  # refused, so that nothing is written
        response = ask(server.url, method, path, headers, None if method in (*READING, "OPTIONS") else b"{}")
        assert not [name for name in response.headers if name.startswith("access-control-")]
        assert response.headers["x-content-type-options"] == "nosniff"
        if response.headers.get("content-type", "").startswith("text/html"):
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy or "default-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy and "unsafe-eval" not in policy
            assert "script-src 'self'" in policy and "'unsafe-inline'" not in policy.partition("style-src")[0]
            assert response.headers["referrer-policy"] == "no-referrer"
            assert response.headers["x-frame-options"] == "DENY"


# --- reading changes nothing ---


def test_reading_changes_no_row(server: SyncServerProcess, names: dict[str, str], database: Callable[[], Any]) -> None:
    """Every GET there is, the resume page of an open wait included: mail scanners open links."""
    before = database()
    for route in READS:
        for accept in ("text/html", "application/json", "text/event-stream"):
            for method in ("GET", "HEAD"):
                ask(server.url, method, path_of(route, names), {"accept": accept})
    assert database() == before
    assert sum(len(rows) for rows in before.values()) > 5, "there was something to change"


@pytest.fixture
def database(server: SyncServerProcess, names: dict[str, str]) -> Callable[[], dict[str, list[tuple[Any, ...]]]]:
    """All rows of all tables, but for the one that /healthz tries writing with, and the lease of the worker, which it
    gives up some seconds after its last run."""

    def dump() -> dict[str, list[tuple[Any, ...]]]:
        connection = sqlite3.connect(f"file:{server.folder / 'weft.db'}?mode=ro", uri=True)
        try:
            tables = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('writers', 'workers')"
                )
            ]
            return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in sorted(tables)}
        finally:
            connection.close()

    return dump


# --- the token ---


def test_the_public_routes_are_these() -> None:
    """A route that is opened has to be written down here as well."""
    assert {route.path for route in TABLE if route.public} == PUBLIC


@each(CLOSED)
def test_closed_routes_ask_for_the_token(closed: SyncServerProcess, names: dict[str, str], route: RouteSpec) -> None:
    path = path_of(route, names)
    body = None if route.method in READING else b"{}"
    media = {} if body is None else {"content-type": route.takes or "application/json"}
    for given in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": TOKEN},
        {"cookie": f"weft_{closed.url.rpartition(':')[2]}={TOKEN}"},
        {"x-api-key": TOKEN},
    ):
        refused = ask(closed.url, route.method, path, {**media, **given, **STREAM}, body)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized"), given
        assert refused.headers["www-authenticate"] == "Bearer"
    refused = ask(closed.url, route.method, f"{path}?token={TOKEN}&access_token={TOKEN}", media, body)
    assert refused.status_code == 401, "a token in an address would end up in logs"


def test_every_api_route_but_the_resume_links_is_closed() -> None:
    assert {route.path for route in TABLE if route.path.startswith("/api/")} - {r.path for r in CLOSED} == {
        "/api/resume/{token}"
    }


# --- webhooks: public, and closed to everybody without the webhook's own secret ---


@pytest.fixture(scope="module")
def hook(closed: SyncServerProcess) -> str:
    """Stores a workflow with a webhook; returns the webhook's secret."""
    document = {
        "format": "weft/1",
        "name": "hooked",
        "blocks": {
            "hook": {"type": "webhook"},
            "keep": {"type": "set", "params": {"value": "<hook.body>"}},
        },
        "edges": [{"source": "hook", "target": "keep"}],
    }
    saved = _client.post(f"{closed.url}/api/workflows", json=document, headers=_BEARER)
    assert saved.status_code == 201, saved.text
    shown = _client.get(f"{closed.url}/api/webhooks/hooked:hook", headers=_BEARER)
    return str(shown.json()["secret"])


_BEARER = {"authorization": f"Bearer {TOKEN}"}


def _signed(secret: str, body: bytes, at_s: int | None = None) -> dict[str, str]:
    at_s = int(time.time()) if at_s is None else at_s
    stamp = {"x-weft-timestamp": str(at_s), "x-weft-signature": sign(secret, body, at_s)}
    return {"content-type": "application/json", **stamp}


def _runs(server: SyncServerProcess) -> int:
    return len(_client.get(f"{server.url}/api/runs?workflow=hooked&limit=1000", headers=_BEARER).json()["runs"])


def test_a_webhook_cannot_be_forged(closed: SyncServerProcess, hook: str) -> None:
    body, now_s, before = b'{"n": 1}', int(time.time()), _runs(closed)
    good = _signed(hook, body, now_s)
    for headers, sent in (
        ({"content-type": "application/json"}, body),
        (_BEARER, body),
        ({**good, **_BEARER}, body + b" "),
        ({**good, "x-weft-timestamp": str(now_s + 1)}, body),
        (_signed(hook, body, now_s - 301), body),
        (_signed(hook, body, now_s + 400), body),
        (_signed(TOKEN, body), body),
        (_signed("", body), body),
        ({name: value for name, value in good.items() if name != "x-weft-timestamp"}, body),
        ({name: value for name, value in good.items() if name != "x-weft-signature"}, body),
    ):
        refused = ask(closed.url, "POST", "/hooks/hooked:hook", headers, sent)
        assert refused.status_code == 401, headers
    for path in ("/hooks/hooked:hook/", "/hooks/hooked:hook/x", "/hooks//hooked:hook", "/HOOKS/hooked:hook", "/hooks/"):
        assert ask(closed.url, "POST", path, good, body).status_code == 404, path
    assert _runs(closed) == before


def test_a_webhook_takes_a_delivery_once_and_data_only(closed: SyncServerProcess, hook: str) -> None:
    body = b'{"workflow": "other", "document": {"blocks": {}}, "trigger": "keep", "version": 9}'
    headers, before = _signed(hook, body), _runs(closed)
    started = ask(closed.url, "POST", "/hooks/hooked:hook?workflow=other&trigger=keep", headers, body)
    assert started.status_code == 202
    for more in ({}, {"x-weft-delivery": "another-name"}):
        again = ask(closed.url, "POST", "/hooks/hooked:hook", {**headers, **more}, body)
        assert (again.status_code, again.json()["run"]) == (409, started.json()["run"])
    run = _client.get(f"{closed.url}/api/runs/{started.json()['run']}", headers=_BEARER).json()
    assert run["workflow"] == "hooked"
    assert _runs(closed) == before + 1
    files = b"".join(path.read_bytes() for path in closed.folder.iterdir() if path.name.startswith("weft.db"))
    assert hook.encode() not in files
    assert headers["x-weft-signature"].removeprefix("v1=").encode() not in files


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_served_with_a_token_only(tmp_path: Path, host: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    done = subprocess.run(
        [sys.executable, "-m", "server", "serve"],
        cwd=ROOT,
        env={**environ, "WEFT_TOKEN": "off", "WEFT_HOST": host, "WEFT_PORT": "0", "WEFT_DB": str(tmp_path / "weft.db")},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 2
    assert "WEFT_TOKEN" in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# --- what a workflow may reach ---


class Target:
    """Servers of this machine. `open_port` may be reached by workflows, `shut_port` may not. `hits` of the latter."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self.received: list[str] = []
        self._servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler(n == 1)) for n in range(2)]
        self.open_port, self.shut_port = (server.server_address[1] for server in self._servers)
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _handler(self, shut: bool) -> type[http.server.BaseHTTPRequestHandler]:
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if shut:
                    target.hits.append(self.path)
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length).decode()
                if self.path.startswith("/to/"):
                    self.send_response(302)
                    self.send_header("Location", bytes.fromhex(self.path[4:]).decode("latin-1"))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                secret = self.headers.get("authorization", "")
                target.received.append(secret)
                answer = json.dumps({"headers": dict(self.headers), "body": body, "again": list(written(secret))})
                self.send_response(500 if self.path == "/fail" else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("X-Echo", secret)
                self.send_header("Content-Length", str(len(answer.encode())))
                self.end_headers()
                self.wfile.write(answer.encode())

            do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def written(secret: str) -> Iterator[str]:
    """The ways in which a secret may be written."""
    raw = secret.encode()
    yield secret
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)
    for before in (b"", b"a", b"ab"):
        for after in (b"", b"z", b"zz"):
            yield base64.b64encode(before + raw + after).decode()
            yield base64.urlsafe_b64encode(before + raw + after).decode()


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    target = Target()
    yield target
    target.close()


CANARY = 'c4nary/"T+=?&ö-0815'
PLAIN_CANARY = "an0ther-c4nary-4711"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, target: Target) -> Iterator[SyncServerProcess]:
    """A server with secrets that writes all it does into a log, and may reach one private port."""
    folder = tmp_path_factory.mktemp("guarded")
    environ = {
        "WEFT_ALLOW_PRIVATE": f"127.0.0.1:{target.open_port}",
        "WEFT_SECRET_CANARY": CANARY,
        "WEFT_UNBOUND_SECRETS": "true",  # so that it can be used in every param
        "WEFT_ENV_PLAIN_CANARY": PLAIN_CANARY,
        "WEFT_ENV_REGION": "north-by-north-west",
        "WEFT_NOT_SECRET": "REGION",
        "WEFT_LOG": "debug",
    }
    process = SyncServerProcess(folder, environ, log=folder / "log")
    yield process
    if process.running:
        process.kill()


ADDRESSES = [
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:{shut}/",
    "http://[::1]:{shut}/",
    "http://localhost:{shut}/",
    "http://2130706433:{shut}/",
    "http://0x7f000001:{shut}/",
    "http://0x7f.1:{shut}/",
    "http://0177.0.0.1:{shut}/",
    "http://127.1:{shut}/",
    "http://0:{shut}/",
    "http://0.0.0.0:{shut}/",
    "http://[::]:{shut}/",
    "http://[::ffff:127.0.0.1]:{shut}/",
    "http://[::ffff:7f00:1]:{shut}/",
    "http://[64:ff9b::7f00:1]:{shut}/",
    "http://[fe80::1]:{shut}/",
    "http://[fd00::1]/",
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://127.0.0.1:{open}@127.0.0.1:{shut}/",
    "http://１２７.０.０.１:{shut}/",
    "http://127。0。0。1:{shut}/",
    "http://127.0.0.1:{shut}#@weft.example/",
    "http://127.0.0.1:{open}\\@127.0.0.1:{shut}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{shut}/",
    "unix:///run/docker.sock",
    "//127.0.0.1:{shut}/",
    "http://",
]
REFUSALS = {"address_refused", "redirect_refused", "url_invalid", "too_many_redirects"}


@pytest.mark.parametrize("address", ADDRESSES)
def test_private_addresses_are_refused(guarded: SyncServerProcess, target: Target, address: str) -> None:
    """As they are, by reference, and as the end of a redirect."""
    url = address.replace("{shut}", str(target.shut_port)).replace("{open}", str(target.open_port))
    by_way = f"http://127.0.0.1:{target.open_port}/to/{url.encode().hex()}"
    with httpx.Client(base_url=guarded.url, timeout=90) as client:
        for given in (url, by_way):
            run = client.post("/api/runs?wait=60", json={"document": calling("<input.url>"), "input": {"url": given}})
            assert run.json()["status"] == "failed", run.text
            if given == by_way and not address.startswith(("http", "file", "gopher", "unix")):
                continue  # an address without a scheme leads on from the open port
            assert run.json()["error"]["code"] in REFUSALS, run.text
    assert target.hits == []


def test_what_the_operator_allowed_is_reached(guarded: SyncServerProcess, target: Target) -> None:
    with httpx.Client(base_url=guarded.url, timeout=90) as client:
        for url in (f"http://127.0.0.1:{target.open_port}/", "${WEFT_BASE_URL}/demo/echo"):
            run = client.post("/api/runs?wait=60", json={"document": calling(url)}).json()
            assert run["status"] == "succeeded", run


def calling(url: str) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "calling",
        "blocks": {
            "start": {"type": "start"},
            "call": {"type": "http", "params": {"url": url, "timeout_s": 30}, "policy": {"retry": {"max_attempts": 1}}},
        },
        "edges": [{"source": "start", "target": "call"}],
    }


# --- secrets ---


def leaking(port: int) -> dict[str, Any]:
    """Tries to write both secrets down wherever a workflow can."""
    both = "${CANARY} ${PLAIN_CANARY}"
    url = f"http://127.0.0.1:{port}"
    function = "console.log('printed', '${CANARY}'); return {s: '${CANARY}', e: encodeURIComponent('${CANARY}')}"
    blocks: dict[str, Any] = {
        "call": {
            "type": "http",
            "assign": "$.kept",
            "params": {
                "method": "POST",
                "url": url + "/echo",
                "query": {"region": "${REGION}", "q": "${PLAIN_CANARY}"},
                "headers": {"Authorization": "${CANARY}", "X-Other": "${PLAIN_CANARY}"},
                "body": {"deep": [{"${CANARY}": both}], "text": f"a {both} b"},
            },
        },
        "copy": {"type": "set", "params": {"value": {"again": "<call.body>", "direct": both, "${CANARY}": 1}}},
        "keep": {"type": "variables", "params": {"assign": {"mine": both, "yours": "<copy>"}}},
        "run": {"type": "function", "params": {"code": function}},
        "each": {"type": "loop", "params": {"mode": "each", "items": ["${CANARY}", both]}},
        "item": {"type": "set", "parent": "each", "params": {"value": "<loop.item>"}},
        "mail": {"type": "email", "params": {"to": "a@example.org", "subject": both, "body": both}},
        "fail": {
            "type": "http",
            "params": {"url": url + "/fail", "headers": {"Authorization": "${CANARY}"}},
            "policy": {"retry": {"max_attempts": 2, "initial_ms": 10}},
        },
        "threw": {"type": "set", "params": {"value": "<fail>"}},
        "throw": {"type": "function", "params": {"code": "throw new Error('with ${CANARY} in it')"}},
        "shown": {"type": "set", "params": {"value": "<throw>"}},
        "ask": {
            "type": "approval",
            "params": {
                "title": "About ${CANARY}",
                "text": both,
                "show": {"all": "<call>", "direct": both},
                "fields": {"type": "object", "properties": {"note": {"type": "string", "default": "${CANARY}"}}},
                "actions": ["yes"],
                "notify": {"email": ["${PLAIN_CANARY}@example.org"], "webhook": url + "/fail?k=${PLAIN_CANARY}"},
            },
        },
        "end": {
            "type": "response",
            "params": {"status": 200, "headers": {"X-Secret": "${CANARY}"}, "body": {"b": both}},
        },
    }
    order = ["start", "call", "copy", "keep", "run", "each", "mail", "fail"]
    edges = [{"source": one, "target": other} for one, other in pairwise(order)]
    edges += [
        {"source": "each", "handle": "body", "target": "item"},
        {"source": "fail", "handle": "error", "target": "threw"},
        {"source": "threw", "target": "throw"},
        {"source": "throw", "handle": "error", "target": "shown"},
        {"source": "shown", "target": "ask"},
        {"source": "ask", "target": "end"},
    ]
    return {
        "format": "weft/1",
        "name": "leaking",
        "variables": {"kept": None, "mine": None, "yours": None},
        "blocks": {"start": {"type": "start"}, **blocks},
        "edges": edges,
    }


def test_a_secret_never_comes_out(guarded: SyncServerProcess, target: Target, names: dict[str, str]) -> None:
    seen: dict[str, bytes] = {}
    with httpx.Client(base_url=guarded.url, timeout=90) as client:
        started = client.post("/api/runs?wait=60", json={"document": leaking(target.open_port)})
        assert started.json()["status"] == "waiting", started.text
        run = started.json()["run"]
        (wait,) = client.get("/api/waits", params={"run": run}).json()["waits"]
        here = {**names, "{id}": run, "{token}": httpx.URL(wait["link"]).path.rpartition("/")[2], "{key}": "call"}
        while_waiting = {**here, "{key}": "ask"}
        for route in READS:
            for form in (here, while_waiting):
                for accept in ("application/json", "text/html"):
                    if route.path.endswith("/events") and accept == "text/html":
                        continue  # a stream that does not end yet; read below
                    path = path_of(route, form)
                    seen[f"{accept} {path}"] = client.get(path, headers={"accept": accept}).content
        link = httpx.URL(wait["link"]).path
        seen["refused"] = client.post(link, json={"action": "${CANARY}", "fields": {"note": 1}}).content
        seen["answered"] = client.post(link, json={"action": "yes", "fields": {"note": "ok"}}).content
        seen["stream"] = client.get(f"/api/runs/{run}/events", headers=STREAM).content
        ended = client.get(f"/api/runs/{run}")
        seen["run"] = ended.content
        assert ended.json()["status"] == "succeeded", ended.text
        run2 = client.post("/api/runs?wait=60", json={"document": failing(target.open_port)})
        seen["failed"] = run2.content
        assert run2.json()["status"] == "failed"
    assert CANARY in target.received, "the target did get it"
    assert b"north-by-north-west" in seen["stream"], "what is no secret is there"
    assert seen["stream"].count(b"[redacted]") > 10
    assert guarded.stop() == 0
    for file in guarded.folder.iterdir():
        seen[file.name] = file.read_bytes()
    assert "weft.db" in seen and b"[redacted]" in seen["log"], "the mail went into the log"
    for secret in (CANARY, PLAIN_CANARY):
        for written_as in forms_of(secret):
            for place, content in seen.items():
                at = content.find(written_as)
                assert at < 0, (place, written_as, content[max(0, at - 200) : at + 200])


def failing(port: int) -> dict[str, Any]:
    document = calling(f"http://127.0.0.1:{port}/fail")
    document["blocks"]["call"]["params"]["headers"] = {"Authorization": "${CANARY}"}
    return document


def forms_of(secret: str) -> set[bytes]:
    """What none of the files and answers may hold: the secret as text, and of base64 the part it settles alone."""
    raw = secret.encode()
    forms = {raw, json.dumps(secret)[1:-1].encode(), quote(secret, safe="").encode(), quote_plus(secret).encode()}
    forms |= {json.dumps(json.dumps(secret)[1:-1])[1:-1].encode(), secret.encode("latin-1", "replace")}
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * before + raw)
            forms.add(whole[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6])
    return forms


@pytest.fixture
async def speaking() -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    services = Services(
        sandbox=sandbox, http=GuardedClient(), env={"CANARY": PLAIN_CANARY}, secrets=frozenset({"CANARY"})
    )
    engine = await Engine.open(
        ModelStore(), registry=Registry.load([Speak()], sandbox=sandbox), services=services, secret=b"x" * 32
    )
    yield engine
    await engine.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_deltas_hide_a_secret_that_comes_in_pieces(speaking: Engine, size: int) -> None:
    text = f"one {PLAIN_CANARY} two {PLAIN_CANARY[:10]} three {PLAIN_CANARY[:-1]}"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    document = {
        "format": "weft/1",
        "name": "speaking",
        "blocks": {
            "start": {"type": "start"},
            "wait": {"type": "signal", "params": {"name": "go"}},
            "say": {"type": "speak", "params": {"pieces": pieces}},
        },
        "edges": [{"source": "start", "target": "wait"}, {"source": "wait", "target": "say"}],
    }
    submitted = await speaking.submit(document)
    deltas = speaking.events.deltas(submitted.run)
    await speaking.signal(submitted.run, "go")
    run = await finished(speaking, submitted.run)
    assert deltas.read() == {"say": f"one [redacted] two {PLAIN_CANARY[:10]} three [redacted]"}
    deltas.close()
    assert run.output == {"all": f"one [redacted] two {PLAIN_CANARY[:10]} three {PLAIN_CANARY[:-1]}"}


async def finished(engine: Engine, run: str) -> Any:
    deadline = time.monotonic() + 60
    while (view := await engine.wait_finished(run, 5)).status != "succeeded":
        assert time.monotonic() < deadline and view.status in ("queued", "running", "waiting"), view
        await asyncio.sleep(0.02)
    return view

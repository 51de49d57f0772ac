"""Host, origin, content type and size checks hold on every route of the table, before anything else happens."""

from __future__ import annotations

import httpx
import pytest
from msgspec.structs import replace

from executor.open.engine import Engine
from server.api import TABLE
from server.app import create_app
from server.http.security import ANY_BODY_PREFIXES, FILE_FORM_PREFIXES, FORM_PREFIXES
from server.settings import Settings

WRITES = [spec.path for spec in TABLE if spec.method == "POST"]
CLOSED = [(spec.method, spec.path) for spec in TABLE if not spec.public]


def path_of(template: str) -> str:
    return template.replace("{id}", "r" * 32).replace("{name}", "n").replace("{token}", "t" * 43)


async def test_a_foreign_host_reaches_nothing(gate: httpx.AsyncClient) -> None:
    for spec in TABLE:
        response = await gate.request(spec.method, path_of(spec.path), headers={"host": "evil.test:8765"})
        found = (response.status_code, response.headers["content-type"])
        assert found == (421, "application/problem+json"), f"{spec.method} {spec.path}"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8765", 200),
        ("localhost:8765", 200),
        ("LOCALHOST:8765", 200),
        ("[::1]:8765", 200),
        ("127.0.0.1", 421),
        ("127.0.0.1:8766", 421),
        ("localhost.evil.test:8765", 421),
        ("127.0.0.1:8765@evil.test", 421),
        ("evil.test", 421),
        ("localhost:8765/..", 421),
        ("localhost:x", 421),
        ("localhost:" + "8" * 5000, 421),
        ("", 421),
    ],
)
async def test_the_port_is_part_of_the_host(client: httpx.AsyncClient, host: str, status: int) -> None:
    assert (await client.get("/healthz", headers={"host": host})).status_code == status


async def test_configured_hosts_are_accepted(settings: Settings, engine: Engine) -> None:
    wider = replace(settings, allowed_hosts=("weft.example", "other:81"), public_url="https://public.example")
    transport = httpx.ASGITransport(app=create_app(wider, engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
        expected = {"weft.example": 200, "weft.example:9": 200, "other:81": 200, "other": 421, "public.example": 200}
        for host, status in expected.items():
            assert (await client.get("/healthz", headers={"host": host})).status_code == status, host


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.test"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
    ids=lambda headers: " ".join(headers.values()),
)
async def test_other_sites_cannot_write(gate: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for path in WRITES:
        response = await gate.post(path_of(path), json={}, headers=headers)
        assert (response.status_code, response.json()["code"]) == (403, "cross_site"), path


async def test_an_opaque_origin_may_only_answer_a_resume_page(client: httpx.AsyncClient) -> None:
    assert (await client.post("/api/runs", json={}, headers={"origin": "null"})).status_code == 403
    response = await client.post("/resume/unknown", data={"action": "x"}, headers={"origin": "null"})
    assert response.status_code == 404


@pytest.mark.parametrize("path", ["/api/runs/r/events", "/api/runs", "/api/waits"])
async def test_other_sites_cannot_read_or_hold_streams(gate: httpx.AsyncClient, path: str) -> None:
    no_cors = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert (await gate.get(path, headers=no_cors)).status_code == 403
    assert (await gate.get(path, headers={"origin": "http://evil.test"})).status_code == 403


async def test_a_link_from_elsewhere_opens_a_page(client: httpx.AsyncClient) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await client.get("/", headers=followed)).status_code == 200


async def test_our_own_pages_may_write(client: httpx.AsyncClient) -> None:
    ours = {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}
    response = await client.post("/api/validate", json={"blocks": {}}, headers=ours)
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("media", "accepted_below"),
    [
        ("text/plain", ()),
        ("multipart/form-data; boundary=x", FILE_FORM_PREFIXES),
        ("application/x-www-form-urlencoded", FORM_PREFIXES),
        ("", ()),
    ],
)
async def test_writes_take_json_only(gate: httpx.AsyncClient, media: str, accepted_below: tuple[str, ...]) -> None:
    """Except below `ANY_BODY_PREFIXES`: what other systems post there, the token in the address is the credential."""
    for path in WRITES:
        if path.startswith((*accepted_below, *ANY_BODY_PREFIXES)):
            continue
        headers = {"content-type": media} if media else {}
        response = await gate.post(path_of(path), content=b"{}", headers=headers)
        assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type"), path


async def test_no_cors_headers_ever(client: httpx.AsyncClient) -> None:
    asked = {"origin": "http://evil.test", "access-control-request-method": "POST"}
    for response in (await client.options("/api/runs", headers=asked), await client.get("/healthz")):
        assert not [name for name in response.headers if name.startswith("access-control-")]


async def test_html_carries_the_whole_policy(client: httpx.AsyncClient) -> None:
    for path in ("/", "/resume/unknown", "/runs/unknown"):
        headers = (await client.get(path)).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


async def test_headers_are_bounded(gate: httpx.AsyncClient) -> None:
    assert (await gate.get("/healthz", headers={"x": "y" * 40_000})).status_code == 431


async def test_get_changes_no_row(client: httpx.AsyncClient, engine: Engine) -> None:
    for spec in TABLE:
        if spec.method == "GET":
            await client.get(path_of(spec.path), headers={"accept": "application/json"})
    assert await engine.runs.list() == []
    assert await engine.store.list_workflows() == []


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic the-token"}, {"cookie": "weft_8765=x"}],
)
async def test_closed_routes_ask_for_the_token(gate: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for method, path in CLOSED:
        response = await gate.request(method, path_of(path), headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), f"{method} {path}"
        assert response.headers["www-authenticate"] == "Bearer", f"{method} {path}"


def test_the_public_routes_are_these() -> None:
    """A route that is opened has to be written down here as well."""
    assert {spec.path for spec in TABLE if spec.public} == {
        "/",
        "/api/resume/{token}",
        "/approvals",
        "/knowledge",
        "/knowledge/{id}",
        "/usage",
        "/loom/{id}",
        "/chat/{name}/{token}/{conversation}/{n}/answer",
        "/chat/{name}/{token}/{conversation}/{n}/stop",
        "/callbacks/{token}",
        "/chat/{name}/{token}",
        "/chat/{name}/{token}/{conversation}",
        "/chat/{name}/{token}/{conversation}/{n}/events",
        "/demo/echo",
        "/forms/{name}/{token}",
        "/healthz",
        "/readyz",
        "/hooks/{id}",
        "/login",
        "/logout",
        "/oidc/start",
        "/oidc/callback",
        "/openapi.json",
        "/resume/{token}",
        "/runs",
        "/runs/{id}",
        "/settings",
        "/sign-in",
        "/w/{id}",
    }


async def test_the_token_opens_them(locked: httpx.AsyncClient) -> None:
    response = await locked.get("/api/runs", headers={"authorization": "bearer the-token"})
    assert response.status_code == 200


async def test_pages_ask_for_the_token_with_a_form(gate: httpx.AsyncClient) -> None:
    for path in ("/", "/runs/abc"):
        response = await gate.get(path)
        assert response.status_code == 401
        assert "Sign in" in response.text and 'type="password"' in response.text


async def test_signing_in_sets_a_strict_cookie_that_is_not_the_token(locked: httpx.AsyncClient) -> None:
    refused = await locked.post("/login", json={"token": "wrong"})
    assert refused.status_code == 401 and "set-cookie" not in refused.headers
    accepted = await locked.post("/login", json={"token": "the-token"})
    cookie = accepted.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "the-token" not in cookie
    assert (await locked.get("/api/runs")).status_code == 200
    assert (await locked.get("/")).status_code == 200


async def test_path_tricks_reach_nothing(gate: httpx.AsyncClient) -> None:
    for path in (
        "/api/runs/healthz",
        "//api/runs",
        "/api/runs/",
        "/API/runs",
        "/api/runs;x",
        "/api%2fruns",
        "/static/../api/runs",
    ):
        response = await gate.get(path)
        assert response.status_code in (401, 404), path

"""Each route with each kind of caller: what they may, made from the table."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.kernel.process.acting import ROLES, Role, includes
from executor.open.engine import Engine
from server.api import TABLE
from server.app import create_app
from server.http.table import RouteSpec
from server.settings import Settings
from tests.unit.server.conftest import BASE

CALLERS = ("unknown", "link holder", *ROLES)
ALLOWED, UNAUTHORIZED, FORBIDDEN = "allowed", 401, 403
LEAST_ROLE = {
    "POST /api/validate": "editor",
    "POST /api/workflows": "editor",
    "GET /api/workflows": "viewer",
    "GET /api/workflows/{name}": "viewer",
    "DELETE /api/workflows/{name}": "editor",
    "GET /api/workflows/{name}/loom": "viewer",
    "GET /api/cards": "viewer",
    "PUT /api/workflows/{name}/folder": "editor",
    "PUT /api/workflows/{name}/title": "editor",
    "PUT /api/drafts/{id}/folder": "editor",
    "POST /api/runs/rerun": "editor",
    "GET /api/run-times": "viewer",
    "GET /api/runs/{id}/fork": "viewer",
    "GET /api/runs/{id}/continuation": "viewer",
    "POST /api/runs/{id}/keep": "editor",
    "DELETE /api/runs/{id}/keep": "editor",
    "GET /api/workflows/{name}/kept": "viewer",
    "POST /api/workflows/{name}/backtest": "editor",
    "POST /chat/{name}/{token}/{conversation}/{n}/answer": "public",
    "POST /chat/{name}/{token}/{conversation}/{n}/stop": "public",
    "GET /api/models": "editor",
    "GET /loom/{id}": "public",
    "GET /api/workflows/{name}/versions": "viewer",
    "PUT /api/workflows/{name}/active": "editor",
    "GET /api/workflows/{name}/inputs": "viewer",
    "GET /api/blocks": "viewer",
    "POST /api/connectors/openapi": "editor",
    "GET /api/connectors": "viewer",
    "GET /api/connectors/{service}": "viewer",
    "PUT /api/connectors/{service}": "admin",
    "DELETE /api/connectors/{service}": "admin",
    "POST /api/drafts": "editor",
    "GET /api/drafts": "viewer",
    "GET /api/drafts/{id}": "viewer",
    "PUT /api/drafts/{id}": "editor",
    "DELETE /api/drafts/{id}": "editor",
    "POST /api/drafts/{id}/run": "editor",
    "POST /api/drafts/{id}/versions": "editor",
    "POST /api/drafts/{id}/listen": "editor",
    "POST /api/drafts/{id}/poll": "editor",
    "GET /api/drafts/{id}/inputs": "viewer",
    "POST /api/workflows/{name}/runs": "editor",
    "POST /api/runs": "editor",
    "GET /api/runs": "viewer",
    "GET /api/runs/{id}": "viewer",
    "DELETE /api/runs/{id}": "editor",
    "GET /api/runs/{id}/document": "viewer",
    "GET /api/runs/{id}/graph": "viewer",
    "GET /api/runs/{id}/lane": "viewer",
    "GET /api/runs/{id}/why": "viewer",
    "POST /api/runs/{id}/cancel": "editor",
    "POST /api/runs/{id}/signals/{name}": "editor",
    "POST /api/runs/{id}/updates/{name}": "editor",
    "POST /api/runs/{id}/queries/{name}": "viewer",
    "POST /api/runs/{id}/fork": "editor",
    "POST /api/runs/{id}/nodes/{key}/retry": "editor",
    "POST /api/runs/{id}/migrate": "editor",
    "GET /api/runs/{id}/rerun": "viewer",
    "POST /api/runs/{id}/rerun": "editor",
    "GET /api/runs/{id}/events": "viewer",
    "GET /api/runs/{id}/state": "viewer",
    "GET /api/runs/{id}/diff/{other}": "viewer",
    "GET /api/runs/{id}/nodes/{key}": "viewer",
    "GET /api/runs/{id}/plan": "viewer",
    "GET /api/workflows/{name}/plan": "viewer",
    "GET /api/waits": "viewer",
    "GET /api/runs/{id}/waits/{key}": "viewer",
    "POST /api/runs/{id}/waits/{key}": "viewer",  # those who are named; else the role approver
    "DELETE /api/runs/{id}/waits/{key}": "editor",
    "GET /api/runs/{id}/signals": "viewer",
    "GET /resume/{token}": "public",
    "POST /resume/{token}": "public",
    "GET /api/resume/{token}": "public",
    "POST /api/resume/{token}": "public",
    "GET /callbacks/{token}": "public",
    "POST /callbacks/{token}": "public",
    "GET /api/schedules": "viewer",
    "GET /api/schedules/{id}": "viewer",
    "PUT /api/schedules/{id}": "editor",
    "DELETE /api/schedules/{id}": "editor",
    "POST /api/schedules/{id}/enable": "editor",
    "POST /api/schedules/{id}/disable": "editor",
    "POST /api/schedules/{id}/run": "editor",
    "GET /api/cron": "viewer",
    "GET /api/webhooks": "viewer",
    "GET /api/webhooks/{id}": "admin",
    "PUT /api/webhooks/{id}": "admin",
    "DELETE /api/webhooks/{id}": "admin",
    "POST /api/webhooks/{id}/enable": "editor",
    "POST /api/webhooks/{id}/disable": "editor",
    "POST /api/webhooks/{id}/rotate": "admin",
    "GET /hooks/{id}": "public",
    "POST /hooks/{id}": "public",
    "GET /forms/{name}/{token}": "public",
    "POST /forms/{name}/{token}": "public",
    "GET /chat/{name}/{token}": "public",
    "GET /chat/{name}/{token}/{conversation}": "public",
    "POST /chat/{name}/{token}/{conversation}": "public",
    "GET /chat/{name}/{token}/{conversation}/{n}/events": "public",
    "POST /api/files": "approver",
    "GET /api/files/{id}": "viewer",
    "GET /api/secrets": "admin",
    "PUT /api/secrets/{name}": "admin",
    "DELETE /api/secrets/{name}": "admin",
    "POST /api/secrets/rekey": "admin",
    "GET /api/memory": "viewer",
    "GET /api/memory/turns": "viewer",
    "DELETE /api/memory": "editor",
    "GET /api/knowledge": "viewer",
    "POST /api/knowledge": "editor",
    "GET /api/knowledge/{collection}": "viewer",
    "DELETE /api/knowledge/{collection}": "editor",
    "GET /api/knowledge/{collection}/documents": "viewer",
    "PUT /api/knowledge/{collection}/documents": "editor",
    "DELETE /api/knowledge/{collection}/documents": "editor",
    "POST /api/knowledge/{collection}/search": "viewer",
    "GET /api/usage": "viewer",
    "GET /api/connections": "editor",
    "PUT /api/connections/{name}": "admin",
    "DELETE /api/connections/{name}": "admin",
    "GET /api/connections/{name}/uses": "editor",
    "POST /api/connections/{name}/test": "editor",
    "POST /api/connections/{name}/connect": "admin",
    "POST /api/oauth/code": "admin",
    "POST /api/mcp/check": "editor",
    "POST /api/blocks/{type}/choices": "editor",
    "POST /api/upkeep/gc": "admin",
    "GET /api/upkeep/gc/{id}": "admin",
    "DELETE /api/cache": "editor",
    "GET /healthz": "public",
    "GET /readyz": "public",
    "GET /api/version": "viewer",
    "GET /metrics": "metrics",
    "GET /api/stats": "viewer",
    "GET /openapi.json": "public",
    "GET /api/openapi.json": "viewer",
    "GET /api/examples": "viewer",
    "GET /api/env": "editor",
    "GET /api/me": "viewer",
    "DELETE /api/me/sessions": "viewer",
    "GET /api/me/sessions": "viewer",
    "DELETE /api/me/sessions/{id}": "viewer",
    "GET /api/users": "admin",
    "POST /api/users": "admin",
    "POST /api/users/{id}/link": "admin",
    "PUT /api/users/{id}/role": "admin",
    "DELETE /api/users/{id}": "admin",
    "DELETE /api/users/{id}/sessions": "admin",
    "GET /api/sessions": "admin",
    "DELETE /api/sessions/{id}": "admin",
    "GET /api/tokens": "admin",
    "POST /api/tokens": "admin",
    "DELETE /api/tokens/{id}": "admin",
    "GET /api/audit": "admin",
    "GET /api/audit/verification": "admin",
    "GET /sign-in": "public",
    "POST /login": "public",
    "POST /logout": "public",
    "GET /oidc/start": "public",
    "GET /oidc/callback": "public",
    "DELETE /api/sessions": "admin",
    "POST /api/sign-in-links": "admin",
    "GET /": "public",
    "GET /runs/{id}": "public",
    "GET /w/{id}": "public",
    "GET /knowledge": "public",
    "GET /knowledge/{id}": "public",
    "GET /usage": "public",
    "GET /runs": "public",
    "GET /approvals": "public",
    "GET /settings": "public",
    "POST /mcp": "viewer",  # and each tool for its own: tests/unit/server/api/test_mcp.py
    "GET /demo/echo": "public",
    "POST /demo/echo": "public",
}
PAGES = {spec.path for spec in TABLE if spec.handler.__name__ == "editor"}  # they ask to sign in, in place of the page


@pytest.fixture
def closed(settings: Settings, engine: Engine) -> Starlette:
    return create_app(replace(settings, token="the-server-token"), engine)


@pytest.fixture
async def http(closed: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as client:
        yield client


async def token_of(http: httpx.AsyncClient, role: Role, **more: object) -> dict[str, str]:
    body = {"name": "test", "role": role, **more}
    made = await http.post("/api/tokens", json=body, headers={"authorization": "Bearer the-server-token"})
    assert made.status_code == 201, made.text
    return {"authorization": f"Bearer {made.json()['token']}"}


def expected(spec: RouteSpec, caller: str) -> object:
    if spec.public:
        return UNAUTHORIZED if spec.path in PAGES and caller in ("unknown", "link holder") else ALLOWED
    if caller not in ROLES:
        return UNAUTHORIZED
    role: Role = caller
    return ALLOWED if includes(role, spec.needs) else FORBIDDEN


async def test_every_route_with_every_caller(http: httpx.AsyncClient) -> None:
    headers: dict[str, dict[str, str]] = {role: await token_of(http, role) for role in ROLES}
    headers |= {"unknown": {}, "link holder": {"authorization": "Bearer AAAA.BBBB"}}
    wrong = []
    for caller in CALLERS:
        for spec in TABLE:
            path = spec.path.replace("{", "").replace("}", "")  # such as /api/runs/id
            answer = await http.request(spec.method, path, headers=headers[caller])
            found: object = answer.status_code if answer.status_code in (401, 403) else ALLOWED
            if spec.path in ("/login", "/hooks/{id}", "/callbacks/{token}") and found != FORBIDDEN:
                found = ALLOWED  # their own credential is not valid
            if found != expected(spec, caller):
                wrong.append((caller, spec.method, spec.path, answer.status_code, answer.text[:100]))
    assert wrong == []


def test_the_least_role_of_every_route() -> None:
    """Each new route is listed here, a second time, with who may call it."""
    found = {f"{spec.method} {spec.path}": "public" if spec.public else spec.needs for spec in TABLE}
    assert found == LEAST_ROLE


async def test_viewers_see_no_links(http: httpx.AsyncClient, asking: dict[str, object]) -> None:
    viewer, approver, editor = [await token_of(http, role) for role in ROLES[1:4]]
    run = (await http.post("/api/runs?wait=60", json={"document": asking}, headers=editor)).json()
    link = run["waits"][0]["link"]
    assert link
    for path in (f"/api/runs/{run['run']}", "/api/waits", f"/api/runs/{run['run']}/waits/ask"):
        seen, hidden = [(await http.get(path, headers=who)).text for who in (approver, viewer)]
        assert link in seen and "/resume/" not in hidden, path
    for path in ("events", "state", "why", "graph", "nodes/ask", "plan", "document"):
        headers = {**viewer, "accept": "application/json"}
        assert "/resume/" not in (await http.get(f"/api/runs/{run['run']}/{path}", headers=headers)).text, path


async def test_a_token_for_some_workflows_reaches_those_alone(
    http: httpx.AsyncClient, hello: dict[str, object], asking: dict[str, object]
) -> None:
    admin = await token_of(http, "admin")
    runs = {}
    for document in (hello, asking):
        name = document["name"]
        assert (await http.post("/api/workflows", json=document, headers=admin)).status_code == 201
        runs[name] = (await http.post(f"/api/workflows/{name}/runs?wait=60", json={}, headers=admin)).json()["run"]
    narrow = await token_of(http, "admin", workflows=["hello"])

    async def status(method: str, path: str) -> int:
        return (await http.request(method, path, headers=narrow)).status_code

    allowed = [("POST", "/api/workflows/hello/runs"), ("GET", f"/api/runs/{runs['hello']}"), ("GET", "/api/me")]
    assert [await status(*one) for one in allowed] == [202, 200, 200]
    refused = [
        ("POST", "/api/workflows/asking/runs"),
        ("GET", f"/api/runs/{runs['asking']}"),
        ("GET", f"/api/runs/{runs['hello']}/diff/{runs['asking']}"),
        ("GET", "/api/runs/unknown"),
        *((spec.method, spec.path) for spec in TABLE if not spec.public and "{" not in spec.path),
    ]
    open_ones = {("GET", "/api/me"), ("GET", "/api/version"), ("POST", "/api/files"), ("POST", "/mcp")}
    assert {await status(*one) for one in refused if one not in open_ones} == {403}


async def test_such_a_token_reaches_no_other_workflow_by_its_title(
    http: httpx.AsyncClient, hello: dict[str, object]
) -> None:
    admin = await token_of(http, "admin")
    assert (await http.post("/api/workflows", json=hello, headers=admin)).status_code == 201
    titled = await http.put("/api/workflows/hello/title", json={"title": "later"}, headers=admin)
    assert titled.status_code == 200
    for name, expected in (("later", 403), ("hello", 202)):
        narrow = await token_of(http, "editor", workflows=[name])
        assert (await http.post("/api/workflows/later/runs", json={}, headers=narrow)).status_code == expected


async def test_such_a_token_reaches_the_files_of_its_runs(http: httpx.AsyncClient, hello: dict[str, object]) -> None:
    """Those that a run of its workflows has, and no others."""
    admin = await token_of(http, "admin")
    narrow, viewer = [await token_of(http, role, workflows=["hello"]) for role in ("editor", "viewer")]
    raw = {"content-type": "application/octet-stream"}

    async def upload(name: str, who: dict[str, str]) -> dict[str, object]:
        made = await http.post(f"/api/files?name={name}", content=name.encode(), headers={**who, **raw})
        assert made.status_code == 201, made.text
        return dict(made.json())

    async def read(file: dict[str, object], who: dict[str, str]) -> int:
        return (await http.get(f"/api/files/{file['id']}", headers=who)).status_code

    for name in ("hello", "other"):
        assert (await http.post("/api/workflows", json={**hello, "name": name}, headers=admin)).status_code == 201
    own, foreign = await upload("own.txt", narrow), await upload("foreign.txt", admin)
    assert (await http.post("/api/files", content=b"x", headers={**viewer, **raw})).status_code == 403
    assert [await read(own, narrow), await read(own, admin)] == [403, 200]  # no run has it
    for workflow, file, who in (("hello", own, narrow), ("other", foreign, admin)):
        body = {"input": {"name": "Ada", "file": file}}
        started = await http.post(f"/api/workflows/{workflow}/runs", json=body, headers=who)
        assert started.status_code == 202, started.text
    assert [await read(own, narrow), await read(own, viewer)] == [200, 200]
    assert [await read(foreign, narrow), await read(foreign, admin)] == [403, 200]
    assert await read({"id": "file_" + "0" * 64}, narrow) == 403

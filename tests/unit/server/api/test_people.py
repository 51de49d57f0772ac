"""Users, tokens, sessions, and the audit, over HTTP."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.kernel.process.acting import present_act
from executor.kernel.store.topics.audit import AuditFilter
from executor.kernel.store.topics.memory import Conversation, MemoryTurn
from executor.kernel.store.topics.people import SessionRow
from executor.open.engine import Engine
from executor.service.upkeep import gc
from server.api import TABLE
from server.app import create_app
from server.http.credentials import id_in, new_token
from server.http.rates import NOTED, NOTED_IN_ALL, Rates
from server.settings import Settings
from tests.support.documents import connector, in_a_row
from tests.support.until import until
from tests.unit.server.conftest import BASE

SERVER = {"authorization": "Bearer the-server-token"}


@pytest.fixture
def closed(settings: Settings, engine: Engine) -> Starlette:
    return create_app(replace(settings, token="the-server-token"), engine)


@pytest.fixture
async def admin(closed: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """With the server's token."""
    transport = httpx.ASGITransport(app=closed)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=SERVER) as client:
        yield client


@pytest.fixture
async def browser(closed: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as client:
        yield client


async def invite(admin: httpx.AsyncClient, id: str, role: str) -> str:
    """The code of the sign-in link."""
    made = await admin.post("/api/users", json={"id": id, "role": role})
    assert made.status_code == 201, made.text
    return str(made.json()["url"].partition("#")[2])


async def me(client: httpx.AsyncClient) -> tuple[Any, ...]:
    answer = await client.get("/api/me")
    return tuple(answer.json()[name] for name in ("actor", "via", "role", "user")) if answer.is_success else ()


async def test_the_link_of_an_invitation_signs_in_once(admin: httpx.AsyncClient, browser: httpx.AsyncClient) -> None:
    code = await invite(admin, "ada", "editor")
    assert (await admin.post("/api/users", json={"id": "ada", "role": "admin"})).json()["code"] == "user_exists"
    assert (await browser.post("/login", json={"code": code})).status_code == 200
    assert await me(browser) == ("user:ada", "session", "editor", "ada")
    assert (await browser.post("/login", json={"code": code})).status_code == 401
    assert await me(admin) == ("server-token", "token", "admin", None)


async def test_the_server_token_signs_in_the_first_admin(admin: httpx.AsyncClient, browser: httpx.AsyncClient) -> None:
    await browser.post("/login", json={"token": "the-server-token"})
    assert await me(browser) == ("user:admin", "session", "admin", "admin")
    for refused in (
        await admin.put("/api/users/admin/role", json={"role": "viewer"}),
        await admin.delete("/api/users/admin"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "first_admin")


async def test_a_role_counts_at_once_and_removal_ends_all(admin: httpx.AsyncClient, browser: httpx.AsyncClient) -> None:
    await browser.post("/login", json={"code": await invite(admin, "ada", "admin")})
    made = (await browser.post("/api/tokens", json={"name": "ci", "role": "admin"})).json()
    program = {"authorization": f"Bearer {made['token']}"}
    await admin.put("/api/users/ada/role", json={"role": "viewer"})
    assert (await me(browser))[2] == "viewer"
    seen = (await admin.get("/api/me", headers=program)).json()
    assert (seen["actor"], seen["role"], seen["user"]) == (f"token:{made['id']}", "viewer", "ada"), (
        "no more than its user"
    )
    [ada] = [user for user in (await admin.get("/api/users")).json()["users"] if user["id"] == "ada"]
    assert ada["sessions"] == 1 and ada["seen_at_ms"]
    assert (await admin.delete("/api/users/ada")).status_code == 200
    assert await me(browser) == ()
    assert (await admin.get("/api/me", headers=program)).status_code == 401
    assert (await admin.delete("/api/users/ada")).status_code == 404


async def test_tokens_expire_and_are_revoked(
    admin: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [(await admin.post("/api/tokens", json={"name": "ci", "role": "viewer", "days": n})).json() for n in (1, 2)]
    headers = [{"authorization": f"Bearer {each['token']}"} for each in made]

    async def statuses() -> list[int]:
        return [(await admin.get("/api/me", headers=each)).status_code for each in headers]

    assert await statuses() == [200, 200]
    listed = (await admin.get("/api/tokens")).json()["tokens"]
    assert {row["prefix"] for row in listed} == {each["token"][:14] for each in made}  # may be of one millisecond
    assert all(row["used_at_ms"] for row in listed) and made[0]["token"] not in str(listed)
    now_ms = engine.parts.clock.now_ms()
    monkeypatch.setattr(engine.parts.clock, "now_ms", lambda: now_ms + 24 * 3_600_000 + 60_000)
    assert await statuses() == [401, 200]
    assert (await admin.delete(f"/api/tokens/{made[1]['id']}")).status_code == 200
    assert await statuses() == [401, 401]


async def test_a_token_has_no_more_than_its_own_role(admin: httpx.AsyncClient, browser: httpx.AsyncClient) -> None:
    await browser.post("/login", json={"code": await invite(admin, "ada", "admin")})
    for role in ("viewer", "editor"):
        made = (await browser.post("/api/tokens", json={"name": "ci", "role": role})).json()
        program = {"authorization": f"Bearer {made['token']}"}
        assert (await admin.get("/api/me", headers=program)).json()["role"] == role, "its user is an admin"
        refused = await admin.get("/api/users", headers=program)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


def test_a_token_has_a_checksum() -> None:
    id, token = new_token()
    assert id_in(token) == id
    wrong = [token[:n] + ("0" if token[n] != "0" else "1") + token[n + 1 :] for n in range(len(token))]
    assert [id_in(each) for each in (*wrong, "", token + "0", token.upper())] == [None] * (len(token) + 3)


async def test_revoking_a_token_ends_its_streams(
    admin: httpx.AsyncClient, closed: Starlette, asking: dict[str, Any]
) -> None:
    made = (await admin.post("/api/tokens", json={"name": "ci", "role": "viewer"})).json()
    run = (await admin.post("/api/runs?wait=60", json={"document": asking})).json()["run"]
    headers = {"authorization": f"Bearer {made['token']}"}
    following = asyncio.create_task(admin.get(f"/api/runs/{run}/events", headers=headers))
    async with asyncio.timeout(60):
        while not closed.state.streams.sessions:
            await asyncio.sleep(0.01)
        await admin.delete(f"/api/tokens/{made['id']}")
        assert (await following).status_code == 200


async def test_signing_out_everywhere(admin: httpx.AsyncClient, browser: httpx.AsyncClient, closed: Starlette) -> None:
    await browser.post("/login", json={"code": await invite(admin, "ada", "viewer")})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as other:
        await other.post("/login", json={"token": "the-server-token"})
        sessions = (await other.get("/api/sessions")).json()["sessions"]
        assert sorted((each["user"], each["current"]) for each in sessions) == [("ada", False), ("admin", True)]
        assert (await browser.delete("/api/me/sessions")).json() == {"ended": 1}
        assert await me(browser) == () and (await me(other))[3] == "admin"
        assert (await admin.delete("/api/users/admin/sessions")).json() == {"ended": 1}
        assert await me(other) == ()
    assert (await admin.delete("/api/me/sessions")).json()["code"] == "no_user"


async def test_a_token_for_one_workflow_gets_no_links_of_another(
    admin: httpx.AsyncClient, asking: dict[str, Any]
) -> None:
    """A run shows what the runs below it wait for: the link would answer it."""
    call = {"type": "run_workflow", "params": {"definition": asking, "input": {"text": "t"}}}
    assert (await admin.post("/api/workflows", json=in_a_row("parent", {"b": call}))).is_success
    run = (await admin.post("/api/workflows/parent/runs?wait=60", json={})).json()["run"]

    async def links(*workflows: str) -> list[Any]:
        body = {"name": "ci", "role": "editor", "workflows": list(workflows)}
        token = (await admin.post("/api/tokens", json=body)).json()["token"]
        view = (await admin.get(f"/api/runs/{run}", headers={"authorization": f"Bearer {token}"})).json()
        return [wait.get("link") for wait in view["child_waits"]]

    assert await links("parent") == [None]
    [link] = await links("parent", "asking")
    assert "/resume/" in link


# --- the audit


async def test_a_deletion_is_recorded_by_its_request_alone(
    admin: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion recorded the act once more when it began before the request had recorded it."""
    acts, collect = [], gc.collect

    async def collecting(*args: Any, **more: Any) -> Any:
        acts.append(present_act())
        return await collect(*args, **more)

    monkeypatch.setattr(gc, "collect", collecting)
    assert (await admin.post("/api/upkeep/gc", json={"older_than_s": 0})).is_success
    await until(lambda: acts)
    assert acts == [None]
    assert [row.action for row in await engine.store.read_audit()] == ["POST /api/upkeep/gc"]


async def test_each_route_that_changes_something_has_one_row(
    admin: httpx.AsyncClient, engine: Engine, asking: dict[str, Any], hello: dict[str, Any]
) -> None:
    audited = {f"{spec.method} {spec.path}" for spec in TABLE if spec.is_audited and not spec.public}

    async def start(document: dict[str, Any] = asking) -> str:
        answer = await admin.post("/api/runs?wait=60", json={"document": document, "input": {}})
        return str(answer.json().get("run") or answer.json()["id"])

    async def rows() -> list[Any]:
        return await engine.store.read_audit()

    async def does(action: str, path: str = "", **request: Any) -> Any:
        method, _, template = action.partition(" ")
        before = len(await rows())
        answer = await admin.request(method, path or template, **request)
        assert answer.is_success, f"{action}: {answer.text}"
        added = (await rows())[before:]
        assert [(row.actor, row.via, row.action) for row in added] == [("server-token", "token", action)], action
        assert added[0].object == (path or template).partition("?")[0]
        audited.discard(action)
        return answer.json()

    before = len(await rows())
    asked = [await start() for _ in range(5)]
    done = [await start(hello) for _ in range(3)]
    assert len(await rows()) == before, "starts are in the journals"
    for run in (*asked, *done):
        [started] = await engine.store.read_events(run, limit=1)
        assert b'"by":"server-token"' in (started.data or b"")

    await does("POST /api/workflows", json=hello)
    await does("POST /api/workflows", json={**hello, "description": "two"})
    await does("PUT /api/workflows/{name}/active", "/api/workflows/hello/active", json={"version": 1})
    draft = await does("POST /api/drafts", json={"document": hello})
    here = f"/api/drafts/{draft['id']}"
    await does("PUT /api/drafts/{id}", here, json={"document": asking}, headers={"if-match": '"1"'})
    await does("POST /api/drafts/{id}/versions", f"{here}/versions", json={}, headers={"if-match": '"2"'})
    await does("PUT /api/drafts/{id}/folder", f"{here}/folder", json={"folder": "Shop"})
    await does("DELETE /api/drafts/{id}", here, headers={"if-match": '"2"'})
    stored_run = (await admin.post("/api/workflows/asking/runs?wait=60", json={"version": 1})).json()["run"]
    await does("POST /api/workflows", json={**asking, "description": "two"})
    await does("POST /api/runs/{id}/migrate", f"/api/runs/{stored_run}/migrate", json={"version": 2})
    await does("POST /api/runs/{id}/signals/{name}", f"/api/runs/{asked[0]}/signals/go", json={})
    audited.discard("POST /api/runs/{id}/updates/{name}")  # of durable functions: test_functions.py
    await does("DELETE /api/runs/{id}/waits/{key}", f"/api/runs/{asked[0]}/waits/ask", json={})
    answer = {"action": "approve", "fields": {"amount": 1}}
    await does("POST /api/runs/{id}/waits/{key}", f"/api/runs/{asked[4]}/waits/ask", json=answer)
    await does("POST /api/runs/{id}/cancel", f"/api/runs/{asked[1]}/cancel", json={})
    async with asyncio.timeout(60):
        while (await engine.runs.row(asked[0])).status != "failed":
            await asyncio.sleep(0.01)
    await does("POST /api/runs/{id}/nodes/{key}/retry", f"/api/runs/{asked[0]}/nodes/ask/retry", json={})
    await does("POST /api/runs/{id}/rerun", f"/api/runs/{done[0]}/rerun", json={})
    await does("POST /api/runs/rerun", json={"runs": [done[0]]})
    assert (await rows())[-1].detail == f"from the start, runs: {done[0]}"
    await does("POST /api/runs/{id}/fork", f"/api/runs/{done[0]}/fork", json={"seq": 1})
    await does("POST /api/runs/{id}/keep", f"/api/runs/{done[0]}/keep", json={})
    await does("DELETE /api/runs/{id}/keep", f"/api/runs/{done[0]}/keep")
    await does("PUT /api/workflows/{name}/folder", "/api/workflows/asking/folder", json={"folder": "Shop"})
    await does("PUT /api/workflows/{name}/title", "/api/workflows/asking/title", json={"title": "Shop"})
    await does("DELETE /api/runs/{id}", f"/api/runs/{done[1]}")
    await does("PUT /api/schedules/{id}", "/api/schedules/s", json={"workflow": "hello", "cron": "0 0 1 1 *"})
    await does("POST /api/schedules/{id}/run", "/api/schedules/s/run", json={})
    await does("POST /api/schedules/{id}/disable", "/api/schedules/s/disable", json={})
    await does("POST /api/schedules/{id}/enable", "/api/schedules/s/enable", json={})
    await does("DELETE /api/schedules/{id}", "/api/schedules/s")
    await does("PUT /api/webhooks/{id}", "/api/webhooks/h", json={"workflow": "hello"})
    await does("POST /api/webhooks/{id}/disable", "/api/webhooks/h/disable", json={})
    await does("POST /api/webhooks/{id}/enable", "/api/webhooks/h/enable", json={})
    await does("POST /api/webhooks/{id}/rotate", "/api/webhooks/h/rotate", json={})
    await does("DELETE /api/webhooks/{id}", "/api/webhooks/h")
    await admin.post("/api/workflows", json={**hello, "name": "gone"})
    await does("DELETE /api/workflows/{name}", "/api/workflows/gone")
    await does("POST /api/upkeep/gc", json={"older_than_s": 0})
    cached = {"type": "function", "params": {"code": "return 1"}, "policy": {"cache": {"scope": "global"}}}
    hello["blocks"]["greet"] = cached
    await start(hello)
    await does("DELETE /api/cache")
    secret = {"value": "a-value-that-is-long", "hosts": ["api.example.com"]}
    await does("PUT /api/secrets/{name}", "/api/secrets/PAYMENTS", json=secret)
    await does("DELETE /api/secrets/{name}", "/api/secrets/PAYMENTS")
    connection = {
        "kind": "oauth2_code", "hosts": ["api.example.com"], "client_id": "weft",
        "authorize_url": "https://id.example.com/a", "token_url": "https://id.example.com/t",
    }  # fmt: skip
    await does("PUT /api/connections/{name}", "/api/connections/crm", json=connection)
    await does("POST /api/connections/{name}/test", "/api/connections/crm/test", json={})
    begun = await does("POST /api/connections/{name}/connect", "/api/connections/crm/connect")
    state = parse_qs(urlsplit(begun["url"]).query)["state"][0]
    await admin.post("/api/oauth/code", json={"state": state, "error": "access_denied"})  # the state is used up
    assert (await rows())[-1].action == "POST /api/oauth/code"
    audited.discard("POST /api/oauth/code")
    await does("DELETE /api/connections/{name}", "/api/connections/crm")
    audited.discard("POST /api/secrets/rekey")  # with the present key there is nothing to change
    turn = MemoryTurn("r:a", "r", time.time_ns() // 10**6, b"[]")  # old ones are swept
    await engine.store.remember(Conversation("hello", "", "ada"), turn)
    await does("DELETE /api/memory", "/api/memory?workflow=hello&key=ada")
    assert (await rows())[-1].detail == "hello: ada"
    await does("POST /api/knowledge", json={"name": "docs", "model": "openai:text-embedding-3-small"})
    documents = "/api/knowledge/docs/documents"
    await does("PUT /api/knowledge/{collection}/documents", documents, json={"name": "a", "text": "tea"})
    await does("DELETE /api/knowledge/{collection}/documents", f"{documents}?name=a")
    assert (await rows())[-1].detail == "docs: a"
    await does("DELETE /api/knowledge/{collection}", "/api/knowledge/docs")
    await does(
        "POST /api/files", "/api/files?name=a.txt", content=b"a", headers={"content-type": "application/octet-stream"}
    )
    await does("PUT /api/connectors/{service}", "/api/connectors/tea", json={"document": connector("tea")})
    await does("DELETE /api/connectors/{service}", "/api/connectors/tea")
    await does("POST /api/users", json={"id": "ada", "role": "viewer"})
    await does("POST /api/users/{id}/link", "/api/users/ada/link")
    await does("PUT /api/users/{id}/role", "/api/users/ada/role", json={"role": "editor"})
    await engine.store.put_session(SessionRow("hash", "mark", 0, 0, "ada"), -1, -1)
    await does("DELETE /api/users/{id}/sessions", "/api/users/ada/sessions")
    await does("DELETE /api/users/{id}", "/api/users/ada")
    token = await does("POST /api/tokens", json={"name": "ci", "role": "viewer"})
    await does("DELETE /api/tokens/{id}", f"/api/tokens/{token['id']}")
    await does("POST /api/sign-in-links")
    await admin.post("/login", json={"token": "the-server-token"})
    [one] = (await admin.get("/api/sessions")).json()["sessions"]
    await does("DELETE /api/sessions/{id}", f"/api/sessions/{one['id']}")
    await admin.post("/login", json={"token": "the-server-token"})
    await does("DELETE /api/sessions")
    async with httpx.AsyncClient(transport=admin._transport, base_url=BASE) as browser:
        await browser.post("/login", json={"token": "the-server-token"})
        await browser.delete("/api/me/sessions")
        await browser.post("/login", json={"token": "the-server-token"})
        [own] = (await browser.get("/api/me/sessions")).json()["sessions"]
        await browser.delete(f"/api/me/sessions/{own['id']}")
    own_acts = [row for row in await rows() if row.via == "session"]
    assert [(row.actor, row.action) for row in own_acts] == [
        ("user:admin", "DELETE /api/me/sessions"),
        ("user:admin", "DELETE /api/me/sessions/{id}"),
    ]
    assert audited == {"DELETE /api/me/sessions", "DELETE /api/me/sessions/{id}"}


async def test_the_audit_says_what_a_run_was_continued_with(admin: httpx.AsyncClient) -> None:
    body = {
        "document": in_a_row("a", {"last": {"type": "set", "params": {"value": "<start.to>"}}}),
        "input": {"to": "x"},
    }
    run = (await admin.post("/api/runs?wait=60", json=body)).json()["run"]
    made = await admin.post(f"/api/runs/{run}/fork", json={"seq": 3, "outputs": {"start": {"to": "a secret"}}})
    assert made.status_code == 202, made.text
    await admin.post(f"/api/runs/{run}/rerun", json={"from": "last", "input": {"to": "a secret"}})
    rows = [row["detail"] for row in (await admin.get("/api/audit")).json()["rows"]]
    assert rows[:2] == ["from last, input: to", "at 3, changed: start"]


async def test_what_was_refused_or_changed_nothing_has_no_row(admin: httpx.AsyncClient, engine: Engine) -> None:
    assert (await admin.put("/api/users/eve/role", json={"role": "admin"})).status_code == 404
    assert (await admin.post("/api/tokens", json={"name": "", "role": "viewer"})).status_code == 422
    assert (await admin.delete("/api/tokens/unknown")).status_code == 404
    assert await engine.store.read_audit() == []


async def test_one_session_is_ended_by_its_user_or_an_admin(
    admin: httpx.AsyncClient, browser: httpx.AsyncClient, closed: Starlette
) -> None:
    code = await invite(admin, "ada", "viewer")
    await browser.post("/login", json={"code": code})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as other:
        await other.post("/login", json={"token": "the-server-token"})
        [mine] = (await browser.get("/api/me/sessions")).json()["sessions"]
        assert (mine["user"], mine["current"]) == ("ada", True)
        [theirs] = [one for one in (await admin.get("/api/sessions")).json()["sessions"] if one["user"] == "admin"]
        refused = await browser.delete(f"/api/me/sessions/{theirs['id']}")
        assert (refused.status_code, refused.json()["code"]) == (404, "session_not_found")
        assert (await browser.delete(f"/api/sessions/{theirs['id']}")).status_code == 403
        assert (await admin.delete(f"/api/sessions/{mine['id']}")).json() == {"ended": 1}
        assert await me(browser) == () and (await me(other))[3] == "admin"
        assert (await admin.delete(f"/api/sessions/{mine['id']}")).status_code == 404
        assert (await admin.get("/api/me/sessions")).json() == {"sessions": []}, "the server's token is no user"
    [row] = (await admin.get("/api/audit?text=delete+/API/sessions/")).json()["rows"]
    assert (row["actor"], row["detail"]) == ("server-token", "ada")


async def test_signing_out_has_a_row(admin: httpx.AsyncClient, browser: httpx.AsyncClient) -> None:
    await browser.post("/login", json={"code": await invite(admin, "ada", "viewer")})
    await browser.post("/logout")
    assert (await browser.post("/logout")).is_success, "no session: no row"
    rows = (await admin.get("/api/audit?actor=user:ada")).json()["rows"]
    assert [(row["via"], row["action"]) for row in rows] == [
        ("session", "POST /logout"),
        ("sign-in link", "POST /login"),
    ]


async def test_refused_sign_ins_have_rows_and_cannot_fill_the_disk(
    admin: httpx.AsyncClient, closed: Starlette, engine: Engine
) -> None:
    now_s = 0.0
    closed.state.auth.rates = Rates(lambda: now_s)

    async def guess(address: str) -> None:
        transport = httpx.ASGITransport(app=closed, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            assert (await client.post("/login", json={"token": "a guess"})).status_code == 401

    async def rows() -> list[str]:
        return [row.detail for row in await engine.store.list_audit(wanted=AuditFilter(actor="unknown"))]

    for _ in range(NOTED + 3):
        await guess("203.0.113.7")
        now_s += 6
    assert await rows() == ["refused: server-token, from 203.0.113.7"] * NOTED
    await guess("203.0.113.8")
    assert (await rows())[0] == "refused: server-token, from 203.0.113.8; 3 more have no row"
    for number in range(300):
        await guess(f"198.51.{number}.1")
        now_s += 1
    assert len(await rows()) <= NOTED_IN_ALL + 2
    assert (await admin.get("/api/audit/verification")).json()["valid"]


async def test_the_audit_is_filtered(admin: httpx.AsyncClient, engine: Engine) -> None:
    for id in ("ada", "a_b", "eve"):
        await invite(admin, id, "viewer")
    at_ms = [row.at_ms for row in await engine.store.read_audit()]

    async def found(**query: Any) -> list[str]:
        rows = (await admin.get("/api/audit", params=query)).json()["rows"]
        return [row["detail"].partition(",")[0] for row in rows]

    assert await found(text="A_B") == ["a_b"] and await found(text="%") == [] and await found(text="\\") == []
    assert await found(text="post /api/users") == ["eve", "a_b", "ada"]
    assert await found(since=at_ms[-1] + 1) == [] and await found(until=at_ms[0]) == []
    assert len(await found(since=at_ms[0], until=at_ms[-1] + 1)) == 3
    assert await found(text="viewer", actor="user:ada") == []
    assert await found(text="viewer", before=3, limit=1) == ["a_b"]


async def test_the_audit_shows_when_a_row_was_changed(
    admin: httpx.AsyncClient, engine: Engine, settings: Settings
) -> None:
    for id in ("ada", "bob", "eve"):
        await invite(admin, id, "viewer")
    page = (await admin.get("/api/audit?limit=2")).json()
    assert [row["n"] for row in page["rows"]] == [3, 2] and page["next"] == 2
    assert page["rows"][0]["detail"] == "eve, viewer"
    sound = (await admin.get("/api/audit/verification")).json()
    assert sound == {"valid": True, "rows": 3, "broken_at": None, "hash": page["rows"][0]["hash"]}

    async def verified(*statements: str) -> tuple[Any, ...]:
        with closing(sqlite3.connect(settings.db_path)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()
        found = (await admin.get("/api/audit/verification")).json()
        return found["valid"], found["broken_at"]

    assert await verified("UPDATE audit SET actor = 'user:bob' WHERE n = 1") == (False, 1)
    assert await verified("UPDATE audit SET actor = 'server-token' WHERE n = 1") == (True, None)
    assert await verified("DELETE FROM audit WHERE n = 3") == (False, 3)
    assert await verified("DELETE FROM audit WHERE n = 2") == (False, 2)


async def test_the_audit_notices_that_its_head_is_gone_and_rows_behind_it(
    admin: httpx.AsyncClient, settings: Settings
) -> None:
    await invite(admin, "ada", "editor")
    await invite(admin, "eve", "viewer")

    async def verified(statement: str, *values: Any) -> tuple[Any, ...]:
        with closing(sqlite3.connect(settings.db_path)) as db:
            db.execute(statement, values)
            db.commit()
        found = (await admin.get("/api/audit/verification")).json()
        return found["valid"], found["broken_at"]

    [last, first] = (await admin.get("/api/audit")).json()["rows"]
    assert await verified("DELETE FROM audit_head") == (False, 1)
    assert await verified("INSERT INTO audit_head VALUES (1, 1, ?)", first["hash"]) == (False, 2)
    assert await verified("UPDATE audit_head SET n = 2") == (False, 2)
    assert await verified("UPDATE audit_head SET hash = ?", last["hash"]) == (True, None)
    assert await verified("DELETE FROM audit") == (False, 1)


async def test_no_one_is_invited_as_the_first_admin(admin: httpx.AsyncClient, browser: httpx.AsyncClient) -> None:
    """The server's token signs this user in: with another role it would lock the administrator out."""
    refused = await admin.post("/api/users", json={"id": "admin", "role": "viewer"})
    assert (refused.status_code, refused.json()["code"]) == (409, "user_exists")
    await browser.post("/login", json={"token": "the-server-token"}, headers={"origin": BASE})
    assert await me(browser) == ("user:admin", "session", "admin", "admin")

"""Approvals for certain people: the link leads to sign-in, and who answers is one of them and not the starter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.open.engine import Engine
from server.app import create_app
from server.settings import Settings
from tests.unit.server.conftest import BASE

SERVER = {"authorization": "Bearer the-server-token"}
APPROVE = {"action": "approve", "fields": {"amount": 1}, "by": "The CEO"}


@pytest.fixture
def closed(settings: Settings, engine: Engine) -> Starlette:
    return create_app(replace(settings, token="the-server-token"), engine)


@pytest.fixture
async def http(closed: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """Without a cookie or a token."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as client:
        yield client


async def signed_in(http: httpx.AsyncClient, user: str, role: str) -> dict[str, str]:
    """The cookie of a new user."""
    made = await http.post("/api/users", json={"id": user, "role": role}, headers=SERVER)
    code = made.json()["url"].partition("#")[2]
    value = (await http.post("/login", json={"code": code})).cookies["weft_8765"]
    http.cookies.clear()
    return {"cookie": f"weft_8765={value}"}


async def asked(http: httpx.AsyncClient, asking: dict[str, Any], headers: dict[str, str], **params: Any) -> str:
    """The path of the link."""
    asking["blocks"]["ask"]["params"] |= params
    started = await http.post("/api/runs?wait=60", json={"document": asking}, headers=headers)
    [wait] = (await http.get(f"/api/waits?run={started.json()['run']}", headers=SERVER)).json()["waits"]
    return str(wait["link"]).removeprefix(BASE)


async def code(http: httpx.AsyncClient, link: str, headers: dict[str, str]) -> tuple[int, str]:
    answer = await http.post(f"/api{link}", json=APPROVE, headers=headers)
    body = answer.json()
    return answer.status_code, body.get("code") or body["answered_by"]


async def test_only_those_who_are_named_answer(http: httpx.AsyncClient, asking: dict[str, Any]) -> None:
    ada, bob, eve = [
        await signed_in(http, user, role) for user, role in (("ada", "viewer"), ("bob", "approver"), ("eve", "viewer"))
    ]
    link = await asked(http, asking, SERVER, by=["user:ada", "role:approver"])
    page = await http.get(link)
    assert page.status_code == 401 and "Sign in" in page.text and "INV-1" not in page.text
    assert (await http.get(f"/api{link}")).status_code == 401
    assert "INV-1" in (await http.get(link, headers=eve)).text
    assert await code(http, link, {}) == (401, "sign_in_required")
    assert await code(http, link, eve) == (403, "not_yours")
    form = {"content-type": "application/x-www-form-urlencoded", **eve}
    refused = await http.post(link, content="action=approve&field.amount=1", headers=form)
    assert refused.status_code == 422 and "user:ada, role:approver" in refused.text
    assert await code(http, link, ada) == (200, "user:ada"), "and not the name that was typed"
    assert (await code(http, await asked(http, asking, SERVER), bob)) == (200, "user:bob")


async def test_not_who_started_the_run(http: httpx.AsyncClient, asking: dict[str, Any]) -> None:
    ada, bob = await signed_in(http, "ada", "admin"), await signed_in(http, "bob", "admin")
    made = await http.post("/api/tokens", json={"name": "ci", "role": "editor"}, headers=ada)
    program = {"authorization": f"Bearer {made.json()['token']}"}
    for starter in (ada, program):
        link = await asked(http, asking, starter, not_starter=True)
        assert await code(http, link, ada) == (403, "not_yours")
        assert await code(http, link, program) == (403, "not_yours")
        assert await code(http, link, bob) == (200, "user:bob")
    admin = {
        "cookie": "weft_8765=" + (await http.post("/login", json={"token": "the-server-token"})).cookies["weft_8765"]
    }
    http.cookies.clear()
    link = await asked(http, asking, SERVER, not_starter=True)
    assert await code(http, link, admin) == (403, "not_yours"), "the same person"
    assert await code(http, link, ada) == (200, "user:ada")


async def test_the_view_of_a_run_says_who_started_it(http: httpx.AsyncClient, asking: dict[str, Any]) -> None:
    ada = await signed_in(http, "ada", "editor")
    for starter, by in ((ada, "user:ada"), (SERVER, "server-token")):
        started = await http.post("/api/runs", json={"document": asking}, headers=starter)
        view = (await http.get(f"/api/runs/{started.json()['run']}", headers=SERVER)).json()
        assert view["by"] == by


async def test_who_forks_a_run_is_its_starter(http: httpx.AsyncClient, asking: dict[str, Any]) -> None:
    """Or they would approve what they have put into it."""
    ada, bob = await signed_in(http, "ada", "admin"), await signed_in(http, "bob", "admin")
    link = await asked(http, asking, ada, not_starter=True)
    [wait] = (await http.get("/api/waits", headers=SERVER)).json()["waits"]
    made = await http.post(f"/api/runs/{wait['run']}/fork", json={"seq": 2}, headers=bob)
    fork = made.json()["run"]
    assert (await http.get(f"/api/runs/{fork}?wait=60", headers=SERVER)).json()["by"] == "user:bob"
    [copied] = (await http.get(f"/api/waits?run={fork}", headers=SERVER)).json()["waits"]
    of_fork = copied["link"].removeprefix(BASE)
    assert await code(http, of_fork, bob) == (403, "not_yours")
    assert await code(http, of_fork, ada) == (200, "user:ada")
    assert await code(http, link, bob) == (200, "user:bob")


async def test_the_starter_of_a_child_run_is_that_of_its_parent(
    http: httpx.AsyncClient, asking: dict[str, Any]
) -> None:
    ada = await signed_in(http, "ada", "editor")
    asking["blocks"]["ask"]["params"]["not_starter"] = True
    assert (await http.post("/api/workflows", json=asking, headers=SERVER)).status_code == 201
    parent = {
        "format": "weft/1",
        "name": "parent",
        "blocks": {"start": {"type": "start"}, "call": {"type": "run_workflow", "params": {"workflow": "asking"}}},
        "edges": [{"source": "start", "target": "call"}],
    }
    started = (await http.post("/api/runs?wait=60", json={"document": parent}, headers=ada)).json()
    [wait] = [wait for wait in started["waits"] if wait["kind"] == "approval"]
    assert await code(http, wait["link"].removeprefix(BASE), ada) == (403, "not_yours")


async def test_without_names_the_link_is_enough_and_the_audit_says_so(
    http: httpx.AsyncClient, engine: Engine, asking: dict[str, Any]
) -> None:
    link = await asked(http, asking, SERVER)
    assert await code(http, link, {}) == (200, "The CEO")
    [row] = await engine.store.read_audit()
    assert (row.actor, row.via, row.detail) == ("link", "link", "approve, said to be The CEO")
    assert row.object.endswith("/waits/ask") and link.rpartition("/")[2] not in str(row)


async def test_approvers_see_the_links_that_they_may_use(http: httpx.AsyncClient, asking: dict[str, Any]) -> None:
    bob = await signed_in(http, "bob", "approver")
    await asked(http, asking, SERVER, by=["user:ada"])
    await asked(http, asking, SERVER, by=["role:approver"])
    waits = (await http.get("/api/waits", headers=bob)).json()["waits"]
    assert [(wait["request"]["by"], wait["link"] is not None) for wait in waits] == [
        (["user:ada"], False),
        (["role:approver"], True),
    ]


async def test_who_has_signed_in_answers_by_run_and_wait(http: httpx.AsyncClient, asking: dict[str, Any]) -> None:
    ada, bob, eve = [
        await signed_in(http, user, role) for user, role in (("ada", "viewer"), ("bob", "approver"), ("eve", "viewer"))
    ]

    async def place(**params: Any) -> str:
        link = await asked(http, asking, SERVER, **params)
        wait = (await http.get(f"/api{link}", headers=SERVER)).json()
        return f"/api/runs/{wait['run']}/waits/{wait['id']}"

    async def answered(path: str, headers: dict[str, str]) -> tuple[int, str]:
        answer = await http.post(path, json={"action": "approve", "fields": {"amount": 1}}, headers=headers)
        body = answer.json()
        return answer.status_code, body.get("code") or body["answered_by"]

    anyone = await place()
    assert (await answered(anyone, {}))[0] == 401
    assert await answered(anyone, eve) == (403, "forbidden")
    assert await answered(anyone, bob) == (200, "user:bob")
    assert await answered(anyone, bob) == (409, "already_answered")
    named = await place(by=["user:ada"])
    assert await answered(named, bob) == (403, "not_yours")
    assert await answered(named, ada) == (200, "user:ada")
    assert await answered(await place(by=["role:admin"], not_starter=True), SERVER) == (403, "not_yours")
    unknown = anyone.rpartition("/")[0] + "/nothing"
    assert await answered(unknown, bob) == (404, "wait_not_found")
    rows = (await http.get("/api/audit?actor=user:ada", headers=SERVER)).json()["rows"]
    assert (rows[0]["action"], rows[0]["detail"]) == ("POST /api/runs/{id}/waits/{key}", "approve")

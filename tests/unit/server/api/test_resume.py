"""The resume link: a page that works without scripts, and the same in JSON. One answer, and looking changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.open.engine import Engine
from server.app import create_app
from server.pages.html import value_view
from server.settings import Settings

HTML = {"accept": "text/html"}
AS_JSON = {"accept": "application/json"}


@pytest.fixture
async def link(client: httpx.AsyncClient, asking: dict[str, Any], started: Callable[..., Any]) -> str:
    run = await started(asking, {"text": "line one\nline <two>"})
    assert run["status"] == "waiting"
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    return str(wait["link"])


async def test_the_page_asks(client: httpx.AsyncClient, link: str) -> None:
    page = await client.get(link, headers=HTML)
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    assert "<h1>Pay &lt;b&gt;now&lt;/b&gt;?</h1>" in page.text
    assert "INV-1" in page.text and "line &lt;two&gt;" in page.text
    assert 'name="field.amount"' in page.text and 'name="field.note"' in page.text
    assert 'value="approve"' in page.text and ">Reject</button>" in page.text
    assert "<script" not in page.text, "the page must not need one"
    assert '<form method="post">' in page.text and 'name="viewport"' in page.text


async def test_the_page_says_who_asks_and_until_when(client: httpx.AsyncClient, link: str) -> None:
    wait = (await client.get(link, headers=AS_JSON)).json()
    page = await client.get(link, headers=HTML)
    assert f"{wait['workflow']}. <time" in page.text or f"<b>{wait['workflow']}</b> asks you" in page.text
    assert " asks you</p>" in page.text
    assert ("Open until <time" in page.text) is (wait["expires_at_ms"] is not None)
    assert "one answer" in page.text


async def test_the_page_says_when_a_reminder_is_sent_and_when_it_was(
    client: httpx.AsyncClient, started: Callable[..., Any]
) -> None:
    reminded = {"expires_in_s": 3600, "notify": {"email": "ada@example.org"}, "remind_before_s": 1800}
    soon = {**reminded, "remind_before_s": 3599.99}
    for params, text in ((reminded, "A reminder is sent <time"), (soon, "A reminder was sent <time")):
        document = {
            "format": "weft/1",
            "name": "expenses",
            "blocks": {"start": {"type": "start"}, "ask": {"type": "approval", "params": params}},
            "edges": [{"source": "start", "target": "ask"}],
        }
        run = await started(document, {})
        async with asyncio.timeout(30):
            while True:
                (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
                if text in (await client.get(wait["link"], headers=HTML)).text:
                    break
                await asyncio.sleep(0.02)
        assert [one.get("reminder", False) for one in wait["notifications"]] == [False, True]


async def test_the_page_says_what_each_button_does_and_where_the_question_comes_from(
    client: httpx.AsyncClient, started: Callable[..., Any]
) -> None:
    """In the author's words; without them by the names of the blocks that follow."""
    ask = {"title": "Pay?", "outcomes": {"approve": "Pays <start.amount> EUR tonight."}, "expires_in_s": 60}
    document = {
        "format": "weft/1",
        "name": "expenses",
        "blocks": {
            "start": {"type": "start"},
            "ask": {"type": "approval", "name": "Manager", "params": {**ask, "on_expire": "reject"}},
            "pay": {"type": "set", "name": "Pay it", "params": {"value": 1}},
            "no": {"type": "set", "name": "Write to Jo", "params": {"value": 2}},
        },
        "edges": [
            {"source": "start", "target": "ask"},
            {"source": "ask", "handle": "approve", "target": "pay"},
            {"source": "ask", "handle": "reject", "target": "no"},
        ],
    }
    run = await started(document, {"amount": 420})
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    page = (await client.get(wait["link"], headers=HTML)).text
    assert '<span id="outcome.0">Pays 420 EUR tonight.</span>' in page
    assert '<span id="outcome.1">Continues with Write to Jo.</span>' in page
    assert "Pay it<small>only after Approve</small>" in page and "<b>You decide</b>" in page
    assert "After that it counts as Reject." in page


async def test_words_for_a_button_that_is_not_there_are_a_finding(client: httpx.AsyncClient) -> None:
    ask = {"type": "approval", "params": {"title": "Pay?", "outcomes": {"maybe": "Nothing."}}}
    document: dict[str, Any] = {"format": "weft/1", "name": "x", "blocks": {"start": {"type": "start"}, "ask": ask}}
    document["edges"] = [{"source": "start", "target": "ask"}]
    [finding] = (await client.post("/api/validate", json=document)).json()["diagnostics"]
    assert finding["pointer"] == "/blocks/ask/params/outcomes/maybe" and "approve, reject" in finding["hint"]


async def test_the_page_has_the_fonts_of_the_interface(
    settings: Settings, engine: Engine, link: str, tmp_path: Path
) -> None:
    """A stylesheet of this server, which the policy allows; the page is the same without."""
    assets = tmp_path / "_web" / "assets"
    assets.mkdir(parents=True)
    (assets.parent / "index.html").write_text("<!doctype html>")
    (assets / "fonts-abc.css").write_text("")
    (assets / "resume-abc.js").write_text("")
    app = create_app(settings, engine, assets.parent)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8765") as client:
        page = await client.get(link, headers=HTML)
    assert '<link rel="stylesheet" href="/assets/fonts-abc.css">' in page.text
    assert '<script src="/assets/resume-abc.js" type="module">' in page.text
    assert "font-src 'self'" in page.headers["content-security-policy"] and "style=" not in page.text


async def test_looking_changes_nothing(client: httpx.AsyncClient, link: str, engine: Engine) -> None:
    run = (await client.get(link, headers=AS_JSON)).json()["run"]
    before = await engine.runs.view(run)
    for headers in (HTML, AS_JSON, {}):
        await client.get(link, headers=headers)
        await client.head(link, headers=headers)
    after = await engine.runs.view(run)
    assert (after.seq, after.status, [w.status for w in after.waits]) == (before.seq, "waiting", ["pending"])


async def test_answering_by_form(client: httpx.AsyncClient, link: str, engine: Engine) -> None:
    form = {
        "field.note": "fine",
        "field.amount": "5",
        "field.urgent": "true",
        "field.level": '"high"',
        "by": "Ada",
        "action": "approve",
    }
    done = await client.post(link, data=form)
    assert done.status_code == 200
    assert "Thank you. Your answer “Approve” was recorded." in done.text
    wait = await engine.waits.find(link.rpartition("/")[2])
    assert (wait.status, wait.answered_by) == ("answered", "Ada")
    async for _ in engine.follow(wait.run):
        pass
    run = await engine.runs.view(wait.run)
    assert run.status == "succeeded"
    expected = {"note": "fine", "amount": 5, "urgent": True, "level": "high", "action": "approve", "answered_by": "Ada"}
    assert {name: run.output[name] for name in expected} == expected


async def test_a_second_press_says_who_and_when(client: httpx.AsyncClient, link: str) -> None:
    form = {"field.amount": "5", "by": "Ada <A>", "action": "approve"}
    assert (await client.post(link, data=form)).status_code == 200
    late = await client.post(link, data={**form, "by": "Bob", "action": "reject"})
    assert late.status_code == 409
    assert "already answered by Ada &lt;A&gt;" in late.text and "<time" in late.text
    assert "Your answer “Reject” was not recorded." in late.text
    odd = await client.post(link, data={**form, "action": "<b>"})
    assert odd.status_code == 409 and "was not recorded" not in odd.text
    look = await client.get(link, headers=HTML)
    assert look.status_code == 200 and "already answered by Ada" in look.text and "<form" not in look.text
    assert ">Answer<" in look.text and ">Approve<" in look.text and ">action<" not in look.text
    problem = await client.post(link, json={"action": "reject", "fields": {"amount": 1}})
    assert (problem.status_code, problem.json()["code"], problem.json()["answered_by"]) == (
        409,
        "already_answered",
        "Ada <A>",
    )
    assert problem.json()["answered_at_ms"] > 0


async def test_a_wrong_form_keeps_what_was_typed(client: httpx.AsyncClient, link: str) -> None:
    wrong = await client.post(link, data={"field.note": "keep <me>", "field.amount": "lots", "action": "approve"})
    assert wrong.status_code == 422
    assert "Enter a whole number." in wrong.text and 'value="lots"' in wrong.text and "keep &lt;me&gt;" in wrong.text
    small = await client.post(link, data={"field.amount": "0", "action": "approve"})
    assert small.status_code == 422 and "minimum" in small.text and 'aria-invalid="true"' in small.text
    nothing = await client.post(link, data={"field.amount": "3", "action": "explode"})
    assert nothing.status_code == 422 and "explode" in nothing.text
    assert (await client.get(link, headers=AS_JSON)).json()["status"] == "pending"


async def test_answering_in_json(client: httpx.AsyncClient, link: str) -> None:
    token = link.rpartition("/")[2]
    asked = (await client.get(f"/api/resume/{token}")).json()
    assert (asked["status"], asked["actions"], asked["request"]["title"]) == (
        "pending",
        ["approve", "reject"],
        "Pay <b>now</b>?",
    )
    assert "link" not in asked
    wrong = await client.post(f"/api/resume/{token}", json={"action": "approve", "fields": {"amount": "five"}})
    assert (wrong.status_code, wrong.json()["code"], wrong.json()["pointer"]) == (
        422,
        "answer_invalid",
        "/fields/amount",
    )
    shape = await client.post(f"/api/resume/{token}", json={"action": 5})
    assert (shape.status_code, shape.json()["pointer"]) == (422, "/action")
    right = await client.post(link, json={"action": "reject", "fields": {"amount": 2}, "by": "Eve"})
    assert right.status_code == 200
    assert (right.json()["status"], right.json()["answered_by"]) == ("answered", "Eve")


async def test_a_withdrawn_question_says_so(client: httpx.AsyncClient, link: str, engine: Engine) -> None:
    run = (await client.get(link, headers=AS_JSON)).json()["run"]
    await engine.cancel(run)
    async for _ in engine.follow(run):
        pass
    for response in (await client.get(link, headers=HTML), await client.post(link, data={"action": "approve"})):
        assert "withdrawn" in response.text
    assert (await client.post(link, data={"action": "approve"})).status_code == 409
    late = await client.post(link, json={"action": "approve", "fields": {"amount": 1}})
    assert (late.status_code, late.json()["code"]) == (409, "wait_cancelled")


async def test_an_expired_question_says_so(client: httpx.AsyncClient, asking: dict[str, Any], engine: Engine) -> None:
    asking["blocks"]["ask"]["params"] |= {"expires_in_s": 0.05, "on_expire": "continue"}
    run = (await engine.submit(asking)).run
    async for _ in engine.follow(run):
        pass
    (wait,) = await engine.waits.list(None, run)
    link = engine.parts.links.url(run, wait.id)  # the inbox shows it only while the wait is open, however short that is
    page = await client.get(link, headers=HTML)
    assert page.status_code == 200 and "expired" in page.text
    late = await client.post(link, data={"field.amount": "1", "action": "approve"})
    assert late.status_code == 409 and "expired" in late.text


@pytest.mark.parametrize("token", ["x", "a" * 43, "a" * 3000, "%00", "..%2f..", "'--"])
async def test_unknown_links_are_404(client: httpx.AsyncClient, token: str) -> None:
    page = await client.get(f"/resume/{token}", headers=HTML)
    assert page.status_code == 404
    assert (await client.post(f"/resume/{token}", data={"action": "approve"})).status_code == 404
    assert (await client.post(f"/resume/{token}", json={"action": "approve"})).status_code == 404


async def test_links_work_without_the_servers_token(
    locked: httpx.AsyncClient, client: httpx.AsyncClient, link: str
) -> None:
    assert (await locked.get("/api/waits")).status_code == 401
    assert (await locked.get(link, headers=HTML)).status_code == 200
    assert (await locked.post(link, data={"field.amount": "1", "action": "approve"})).status_code == 200


def test_rows_with_the_same_names_are_a_table() -> None:
    shown = value_view([{"what": "Flight", "amount": 640}, {"amount": 600, "what": "<Hotel>"}])
    assert '<th scope="col">what</th><th scope="col">amount</th>' in shown
    assert shown.index("&lt;Hotel&gt;") < shown.index("600")
    others: list[Any] = [[{"a": 1}], [{"a": 1}, {"b": 2}], [{"a": [1]}, {"a": [2]}], [1, 2], [{}, {}]]
    for other in others:
        assert "<table" not in value_view(other)

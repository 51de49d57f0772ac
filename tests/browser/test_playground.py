"""The panel beside the canvas that tries the draft: nothing is published."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers, Watched
from tests.browser.editor import Api, Editor, document
from tests.browser.test_a11y import findings
from tests.support.server import SyncServerProcess


def block(type: str, x: int, y: int = 0, **params: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], "params": params}


def chat() -> dict[str, Any]:
    blocks = {
        "talk": {**block("chat_trigger", 0), "name": "Talk"},
        "say": block("response", 320, body="You said <talk.message> in <talk.conversation>"),
    }
    doc = document(blocks, [("talk", "say")])
    del doc["blocks"]["start"]
    return {**doc, "name": "tried-chat"}


def test_a_chat_is_tried_and_kept(editor: Editor) -> None:
    editor.open(chat())
    editor.at("try").click()
    editor.at("talk-message").fill("hello")
    editor.press("Enter")
    turn = editor.at("playground").get_by_role("listitem").filter(has_text="hello")
    expect(turn).to_contain_text("You said hello in try-")
    expect(turn).to_have_attribute("data-shown", "true")
    editor.has_status("say", "succeeded")
    editor.at("talk-message").fill("again")
    editor.at("talk-send").click()
    answers = editor.at("playground").locator(".talk__theirs")
    expect(answers).to_have_count(2)
    for scheme in ("light", "dark"):
        editor.page.emulate_media(color_scheme=scheme)
        assert not findings(editor.page), scheme
    conversations = {text.rpartition(" ")[2] for text in answers.all_inner_texts()}
    assert len(conversations) == 1
    assert "tried-chat" not in [each["name"] for each in editor.api.get("/api/workflows")["workflows"]]
    editor.page.reload()
    editor.is_ready("talk", "say")
    expect(editor.at("playground").locator(".talk__theirs")).to_have_count(2)
    expect(editor.at("playground")).to_contain_text("You said again")
    editor.has_status("say", "succeeded")
    editor.at("playground").get_by_role("button", name="Keep as test").last.click()
    expect(editor.at("playground")).to_contain_text("Kept as a test")
    kept = editor.api.get("/api/workflows/tried-chat/kept")
    assert editor.run_id() in str(kept)
    editor.page.get_by_role("button", name="New talk").click()
    expect(editor.at("playground").locator(".talk__theirs")).to_have_count(0)


def test_an_event_is_sent_to_the_draft_with_the_form_of_its_trigger(editor: Editor) -> None:
    fields = {"properties": {"what": {"type": "string", "title": "What"}}, "required": ["what"]}
    blocks = {
        "intake": {**block("form_trigger", 0, 200, fields=fields), "name": "Intake"},
        "b": block("set", 320, 200, value="<intake.what>"),
    }
    editor.open({**document(blocks, [("intake", "b")]), "name": "tried-form"})
    editor.at("try").click()
    editor.at("talk-trigger").select_option("intake")
    editor.at("talk-send").click()
    expect(editor.at("playground")).to_contain_text("Enter a value.")
    editor.at("playground").get_by_role("textbox", name="What").fill("a lamp")
    editor.at("talk-send").click()
    editor.has_status("b", "succeeded")
    expect(editor.at("playground").locator(".talk__event")).to_contain_text("a lamp")


def test_a_test_event_is_listened_for_before_publishing(servers: Servers, contexts: Contexts) -> None:
    """The address and its countdown survive a reload, and a restart of the server."""
    first = servers()
    watched = contexts(first.url)
    watched.allow("Failed to load resource|ERR_CONNECTION|net::")
    editor = Editor(watched.page(), first.url)
    blocks = {
        "hook": {**block("webhook", 0, auth="token"), "name": "Order arrives"},
        "b": block("set", 320, value="<hook.body.n>"),
    }
    doc = document(blocks, [("hook", "b")])
    del doc["blocks"]["start"]
    editor.open({**doc, "name": "listened"})
    editor.at("try").click()
    editor.at("listen").click()
    expect(editor.at("listening")).to_contain_text("Listening…")
    url, secret = (editor.at(f"listen-{name}").inner_text() for name in ("url", "secret"))
    assert httpx.post(url, json={"n": 1}).status_code == 401
    sent = httpx.post(url, json={"n": 41}, headers={"authorization": f"Bearer {secret}"})
    assert sent.status_code == 202, sent.text
    editor.has_status("b", "succeeded")
    expect(editor.at("playground").locator(".talk__event")).to_contain_text('"n":41')
    assert editor.run_id() == sent.json()["run"]
    editor.page.reload()
    editor.is_ready("hook", "b")
    expect(editor.at("listen-url")).to_have_text(url)

    first.kill()
    second = servers()
    again = httpx.post(
        url.replace(first.url, second.url), json={"n": 42}, headers={"authorization": f"Bearer {secret}"}
    )
    assert again.status_code == 202, "the address is still the same"
    assert Api(second.url).until(again.json()["run"], "succeeded") == "succeeded"
    assert Api(second.url).get("/api/workflows")["workflows"] == []


def test_the_next_event_of_a_source_is_listened_for(
    editor: Editor, watched: Watched, server: SyncServerProcess
) -> None:
    """Nothing is started before it comes, and listening continues after a reload."""
    watched.allow("Failed to load resource")
    path = server.folder / "databases" / "listened.db"
    path.parent.mkdir(exist_ok=True)
    query = "SELECT id, item FROM orders WHERE id > coalesce(:cursor, 0) ORDER BY id"
    blocks = {
        "order": {**block("event.rows", 0, database=path.name, query=query), "name": "Order"},
        "b": block("set", 320, value="<order.event.item>"),
    }
    doc = document(blocks, [("order", "b")])
    del doc["blocks"]["start"]
    editor.open({**doc, "name": "waits"})
    editor.at("try").click()
    editor.at("listen").click()
    expect(editor.at("playground").get_by_role("alert")).to_contain_text("there is no SQLite file 'listened.db'")
    with closing(sqlite3.connect(path)) as shop:

        def order(item: str) -> None:
            shop.execute("INSERT INTO orders (item) VALUES (?)", [item])
            shop.commit()

        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
        order("old")
        editor.at("listen").click()
        expect(editor.at("listening")).to_contain_text("Listening…")
        assert not findings(editor.page)
        editor.at("newest-event").click()
        events = editor.at("playground").locator(".talk__event")
        expect(events).to_contain_text('"item":"old"')
        editor.at("listen").click()
        editor.at("listening").get_by_role("button", name="Cancel").click()
        editor.at("listen").click()
        expect(editor.at("listening")).to_contain_text("The next event at the source runs the draft.")
        order("tea")
        order("ink")
        editor.page.reload()
        expect(events.last).to_contain_text('"item":"tea"')
        editor.has_status("b", "succeeded")
        expect(editor.at("listen")).to_be_visible()
    assert len(editor.api.get("/api/runs", draft=editor.draft_id)["runs"]) == 2
    assert "waits" not in str(editor.api.get("/api/schedules")["schedules"])

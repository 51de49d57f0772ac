"""A public chat: the answer is read while it is written, loaded again, continued after a crash of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Api, Editor
from tests.browser.test_agent import slow
from tests.browser.test_agent_sheet import AGENT
from tests.support.dev_model import scripted_model

EXAMPLES = Path(__file__).parents[2] / "examples"
TEAS = "Rooibos and peppermint have no caffeine. Both are in stock."


@contextmanager
def dev_model(folder: Path, pause_ms: int) -> Iterator[str]:
    """The model of the example, which speaks so slowly that a page can see it speak; its address."""
    script = json.loads((EXAMPLES / "models" / "chat.json").read_bytes())
    for rule in script["rules"]:
        rule["pause_ms"] = pause_ms
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    with scripted_model(path) as url:
        yield url


def path_of(api: Api, document: dict[str, Any] | None = None) -> str:
    document = document or json.loads((EXAMPLES / "chat.json").read_bytes())
    api.post("/api/workflows", {"document": document})
    return str(urlsplit(api.get("/api/webhooks/chat:chat:chat")["url"]).path)


def say(page: Page, message: str) -> None:
    page.get_by_label("Message", exact=True).fill(message)
    page.keyboard.press("Enter")


def answer(page: Page, n: int) -> Locator:
    return page.locator(f'li[data-n="{n}"]')


def test_an_answer_is_read_while_it_is_written(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    with dev_model(tmp_path, 400) as url:
        server = servers(WEFT_MODEL_DEV=url)
        path = path_of(Api(server.url))
        phone = contexts(server.url, viewport={"width": 390, "height": 844}, color_scheme="dark").page()
        phone.goto(path)
        expect(phone.get_by_role("heading", name="Ask the tea shop")).to_be_visible()
        say(phone, "Which tea has no caffeine?")
        expect(answer(phone, 1)).to_contain_text("Rooibos")
        expect(answer(phone, 1)).to_have_attribute("data-state", "working")
        expect(phone.get_by_role("button", name="Stop")).to_be_visible()
        expect(phone.get_by_role("button", name="Send")).to_be_hidden()
        expect(answer(phone, 1)).to_contain_text(TEAS)
        expect(answer(phone, 1)).to_have_attribute("data-state", "answered")
        expect(phone.get_by_role("status")).to_have_text(f"Answer: {TEAS}")
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
        say(phone, "Which of them is cheaper?")
        expect(answer(phone, 2)).to_contain_text("peppermint is the cheaper one.")
        expect(answer(phone, 2)).to_have_attribute("data-state", "answered")
        phone.reload()
        expect(phone.locator("#log li:not(.time)")).to_have_count(4)
        expect(answer(phone, 1)).to_contain_text(TEAS)
        phone.get_by_role("link", name="New conversation").click()
        expect(phone.locator("#log li")).to_have_count(0)
        see_the_memory(Editor(contexts(server.url).page(), server.url))


def test_a_question_is_answered_in_the_conversation(servers: Servers, contexts: Contexts) -> None:
    """By its visitor, on a phone: the question is a bubble with buttons, and one line after that; Stop ends a run."""
    server = servers()
    ask = {"title": "Pay 20 EUR back?", "text": "It arrives in two days.", "by": ["chat"]}
    document = {
        "format": "weft/1",
        "name": "chat",
        "blocks": {
            "chat": {"type": "chat_trigger", "params": {"title": "Support"}},
            "ask": {"type": "approval", "params": ask},
            "done": {"type": "response", "params": {"body": "It is paid."}},
        },
        "edges": [{"source": "chat", "target": "ask"}, {"source": "ask", "handle": "approve", "target": "done"}],
    }
    phone = contexts(server.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).page()
    phone.goto(path_of(Api(server.url), document))
    say(phone, "I want it back")
    question = phone.locator("#log .question")
    expect(question.get_by_role("heading")).to_have_text("Pay 20 EUR back?")
    expect(answer(phone, 1)).to_be_hidden()
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
    question.get_by_role("button", name="Approve").tap()
    expect(answer(phone, 1)).to_have_text(re.compile("It is paid."))
    expect(phone.locator("#log .folded")).to_have_text("Pay 20 EUR back? Approve")
    expect(question).to_have_count(0)
    say(phone, "And again")
    expect(question).to_be_visible()
    phone.get_by_role("button", name="Stop").tap()
    expect(answer(phone, 2)).to_contain_text("This answer was stopped.")
    expect(phone.get_by_role("button", name="Send")).to_be_visible()


def test_the_tools_of_the_agent_are_lines_without_what_they_were_asked(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    with scripted_model(slow(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        agent = json.loads(json.dumps(AGENT["blocks"]["support"]))
        agent["params"]["prompt"] = "<chat.message>"
        agent["params"]["tools"][1]["by"] = ["chat"]
        document = {
            "format": "weft/1",
            "name": "chat",
            "blocks": {"chat": {"type": "chat_trigger", "params": {"title": "Support"}}, "support": agent},
            "edges": [{"source": "chat", "target": "support"}],
        }
        page = contexts(server.url).page()
        page.goto(path_of(Api(server.url), document))
        say(page, "Where is my order 1042?")
        tools = page.locator("#log .tool")
        expect(tools).to_have_text(["Find order, done"])
        page.get_by_role("button", name="Approve").click()
        expect(tools).to_have_text(["Find order, done", "Refund, done"])
        expect(answer(page, 1)).to_have_attribute("data-state", "answered")
        expect(tools.first).to_be_visible()
        seen = page.content() + httpx.get(f"{page.url}/1/events").text
        seen += httpx.get(page.url, headers={"accept": "application/json"}).text
        assert '"name":"find_order"' in seen
        assert "demo/echo" not in seen and "status=late" not in seen


def see_the_memory(editor: Editor) -> None:
    """In the settings: the conversation, what was said in it, and that it can be deleted."""
    ((talk, turns),) = ((each["key"], each["turns"]) for each in editor.api.get("/api/memory")["conversations"])
    assert turns == 2
    editor.page.goto("/settings?page=memory")
    row = editor.at("memory").get_by_role("row", name=talk)
    expect(row).to_contain_text("2 turns")
    row.get_by_role("button", name="Show").click()
    said = editor.at("memory-turns").get_by_role("listitem")
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("Which tea has no caffeine?")
    expect(said.first).to_contain_text(TEAS)
    editor.press("Escape")
    row.get_by_role("button", name="Delete").click()
    editor.at("delete").click()
    expect(editor.at("memory")).to_contain_text("No conversation is remembered")
    assert editor.api.get("/api/memory")["conversations"] == []


def test_a_page_that_is_loaded_again_has_what_was_written_so_far(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    with dev_model(tmp_path, 5_000) as url:  # it does not come to its end
        server = servers(WEFT_MODEL_DEV=url)
        page = contexts(server.url).page()
        page.goto(path_of(Api(server.url)))
        say(page, "Which tea has no caffeine?")
        expect(answer(page, 1)).to_contain_text("Rooibos")
        page.reload()
        expect(answer(page, 1)).to_contain_text("Rooibos")
        expect(answer(page, 1)).to_have_attribute("data-state", "working")


def test_a_chat_survives_a_crash_in_the_middle_of_an_answer(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    with dev_model(tmp_path, 400) as url:
        server = servers(WEFT_MODEL_DEV=url)
        watched = contexts(server.url)
        watched.allow("Failed to load resource|ERR_|net::")
        page = watched.page()
        page.goto(path_of(Api(server.url)))
        say(page, "Which tea has no caffeine?")
        expect(answer(page, 1)).to_contain_text("Rooibos")
        server.kill()
        expect(answer(page, 1)).to_contain_text("The connection is lost")
        servers(WEFT_MODEL_DEV=url, WEFT_PORT=str(urlsplit(server.url).port), WEFT_LEASE_MS="2000")
        expect(answer(page, 1)).to_have_attribute("data-state", "answered")
        expect(answer(page, 1)).to_contain_text(TEAS)
        expect(page.locator("#log li:not(.time)")).to_have_count(2)
        say(page, "Which of them is cheaper?")
        expect(answer(page, 2)).to_contain_text("Of the two that I named")


def test_a_person_is_waited_for_and_a_failure_is_said(servers: Servers, contexts: Contexts) -> None:
    code = "if (<chat.turn> === 2) throw new Error('inner'); return 1"
    document = {
        "format": "weft/1",
        "name": "chat",
        "blocks": {
            "chat": {"type": "chat_trigger", "at": [0, 0]},
            "ask": {"type": "approval", "at": [272, 0], "params": {"title": "May it?"}},
            "then": {"type": "function", "at": [544, 0], "params": {"code": code}},
            "answer": {"type": "response", "at": [816, 0], "params": {"body": "Yes, it may."}},
        },
        "edges": [
            {"source": "chat", "target": "ask"},
            {"source": "ask", "target": "then"},
            {"source": "then", "target": "answer"},
        ],
    }
    server = servers()
    api = Api(server.url)
    page = contexts(server.url).page()
    page.goto(path_of(api, document))
    for n, said in ((1, "Yes, it may."), (2, "There is no answer to this message.")):
        say(page, "May it?")
        expect(answer(page, n)).to_contain_text("A person has to agree")
        (wait,) = api.get("/api/waits")["waits"]
        api.post(f"/api{urlsplit(wait['link']).path}", {"action": "approve"})
        expect(answer(page, n)).to_contain_text(said)
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_the_inspector_has_the_link(editor: Editor) -> None:
    path = path_of(editor.api)
    document = json.loads((EXAMPLES / "chat.json").read_bytes())
    draft = editor.api.post("/api/drafts", {"document": document, "name": "chat", "base_version": 1})
    editor.page.goto(f"/w/{draft['id']}")
    editor.is_ready("chat")
    editor.block("chat").click()
    expect(editor.at("form-link")).to_have_attribute("href", path)
    expect(editor.at("stored-chat")).to_contain_text("Open for messages.")
    editor.page.goto("/settings?page=webhooks")
    expect(editor.page.get_by_text("Public chat")).to_be_visible()

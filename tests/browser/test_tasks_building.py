"""Six tasks done as a new user does them, from an empty editor and without the documentation: build, run, fix, approve
on a phone, an agent with two tools, a webhook. Things are found by the words on the screen; the API is not asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, box_of
from tests.support.dev_model import scripted_model

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


class Shop(BaseHTTPRequestHandler):
    """Knows orders by number; `asked` is what came."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        number = self.path.rpartition("/")[2]
        known = number.isdecimal() or self.command == "POST"
        body = {"customer": "Ada", "total": int(number) * 10 if number.isdecimal() else 0}
        data = json.dumps(body if known else {"error": "no such order"}).encode()
        self.send_response(200 if known else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def shop() -> Iterator[tuple[str, list[str]]]:
    """A service on this machine: `host:port`, and what was asked of it."""

    class OneShop(Shop):
        asked: ClassVar[list[str]] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), OneShop)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", OneShop.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Newcomer:
    """Looks for words on the page, and clicks and types."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.goto("/")
        self.press("New workflow")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).last.click()

    def card(self, name: str) -> Locator:
        return self.page.locator(".card").filter(has=self.page.get_by_text(name, exact=True))

    def add(self, kind: str, after: str | None = None, row: str | None = None) -> None:
        """Click the ring at the right side of a card, or of one of its rows; without one, the button on the canvas."""
        if after is None:
            self.press("Add a block /")
        else:
            card = box_of(self.card(after))
            at = box_of(self.card(after).get_by_text(row, exact=True)) if row else card
            y = at["y"] + (at["height"] / 2 if row else 32)
            self.page.mouse.click(card["x"] + card["width"], y)
        expect(self.page.get_by_role("combobox", name="Block types")).to_be_focused()
        self.page.keyboard.type(kind)
        self.page.keyboard.press("Enter")

    def fill(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label, exact=True).last
        field.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def copied(self, button: str) -> str:
        """Press the button, and return the text that it copies."""
        self.page.evaluate("navigator.clipboard.writeText('')")
        self.page.get_by_role("button", name=button).first.click()
        Editor(self.page, "").until("async () => (await navigator.clipboard.readText()) !== ''")
        text: str = self.page.evaluate("navigator.clipboard.readText()")
        return text


def test_a_workflow_is_built_run_and_fixed(servers: Servers, contexts: Contexts) -> None:
    with shop() as (place, asked):
        server = servers(WEFT_ALLOW_PRIVATE=place)
        page = contexts(server.url).page()
        user = Newcomer(page)
        # Build: an order is asked for, a condition, two ends. What weft calls it is replaced.
        expect(page.get_by_label("Name of the workflow").first).to_be_editable()  # the draft is loaded
        page.get_by_label("Name of the workflow").first.click()
        page.keyboard.type("Large orders")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Name of the workflow").first).to_have_value("Large orders")
        user.press("Add a block /")
        assert not overlap(box_of(page.get_by_role("dialog", name="Add a block")), box_of(user.card("Start")))
        page.keyboard.press("Escape")
        user.add("http")
        user.card("Start").click()
        user.press("Add field")
        page.keyboard.type("order")
        user.card("HTTP request").click()
        user.fill("URL", f"http://{place}/orders/")
        page.get_by_role("button", name="Insert a value").first.click()
        page.keyboard.press("ArrowRight")
        page.get_by_role("option", name="Start.order").click()
        user.add("if", after="HTTP request")
        rule = page.get_by_placeholder("Type < to choose a value")
        add = page.get_by_role("button", name="Add rule")
        before = box_of(add)
        rule.click()
        page.keyboard.type("<")
        page.get_by_role("option", name="HTTP request").click()
        page.keyboard.type(".")
        page.get_by_role("option", name="HTTP request.body").click()
        page.keyboard.type(".total>")  # what comes back is not known before the first run
        expect(page.get_by_label("Value of Expression of Yes", exact=True)).to_have_value("<HTTP request.body.total>")
        assert box_of(add) == before
        page.get_by_role("combobox").filter(has_text="equals").first.select_option(label="is greater than")
        page.get_by_placeholder("Value", exact=True).click()
        page.keyboard.type("500")
        expect(user.card("Condition")).to_contain_text("If HTTP request.body.total > 500")
        user.add("end", after="Condition", row="Yes")
        user.fill("Body", "A large order of <HTTP request.body.customer>")
        user.add("end", after="Condition", row="Else")
        user.fill("Body", "A small order of <HTTP request.body.customer>")
        # Run it, and read the result.
        user.press("Run")
        page.get_by_role("dialog").get_by_label("Order").fill("64")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Succeeded").click()
        expect(page.get_by_label("Last run")).to_contain_text("A large order of Ada")
        canvas = page.get_by_role("region", name="Canvas")
        expect(canvas).to_contain_text("total640")
        expect(canvas).not_to_contain_text("fields")  # a branch has its name on its edge
        # It fails; the reason is there, the block is changed, and the run continues.
        user.press("Run")
        expect(page.get_by_role("dialog").get_by_label("Order")).to_have_value("64")
        page.keyboard.type("x7")
        page.keyboard.press("Enter")
        note = page.get_by_role("alert").filter(has_text="HTTP request failed")
        expect(note).to_contain_text("no such order")
        note.get_by_role("button", name="Show").click()
        expect(page.get_by_label("Inspector", exact=True)).to_contain_text("answered 404 Not Found: no such order.")
        user.fill("URL", f"http://{place}/orders/7")
        calls = len(asked)
        note.get_by_role("button", name="Continue").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text("Continue with the draft")).to_be_visible()
        expect(dialog.get_by_test_id("fates")).to_contain_text("KeptStart")
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Canvas")).to_be_focused()
        page.get_by_role("button", name="Succeeded").click()
        expect(page.get_by_label("Last run")).to_contain_text("A small order of Ada")
        expect(page.get_by_role("treeitem").filter(has_text="Start")).to_contain_text("Restored")
        assert asked[calls:] == ["GET /orders/7"]
        expect(note).to_have_count(0)


def test_a_question_is_answered_on_a_phone_and_a_second_approver_sees_it(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    watched = contexts(server.url, permissions=["clipboard-read", "clipboard-write"])
    page = watched.page()
    user = Newcomer(page)
    user.add("approval")
    user.fill("Title", "Pay 640 to Ada?")
    user.press("Run")
    expect(page.get_by_text("Approval is waiting for approval")).to_be_visible()
    link = user.copied("Copy link")
    # Messages lie in the corner of the canvas; this one may be gone by now.
    corner = page.locator(".toasts").evaluate("(it) => it.getBoundingClientRect().toJSON()")
    canvas = box_of(page.get_by_role("region", name="Canvas"))
    assert canvas["x"] + canvas["width"] - 24 < corner["right"] < canvas["x"] + canvas["width"]
    assert canvas["y"] + canvas["height"] - 24 < corner["bottom"] < canvas["y"] + canvas["height"]
    expect(page.get_by_test_id("chip")).to_have_text("Waiting")
    # From the inbox of a phone.
    inbox = contexts(server.url, **PHONE).page()
    inbox.goto("/")
    inbox.get_by_role("link", name="Approvals").tap()
    expect(inbox.get_by_text("Pay 640 to Ada?")).to_be_visible()
    # From a notification, on another phone, in the dark; and a third one that still shows the question.
    late = contexts(server.url, **PHONE)
    late.allow("409")
    second = late.page()
    second.goto(link)
    first = contexts(server.url, **PHONE, color_scheme="dark").page()
    first.goto(link)
    first.get_by_role("button", name="Approve").tap()
    expect(first.get_by_text("Your answer “Approve” was recorded.")).to_be_visible()
    expect(inbox.get_by_text("No pending approvals")).to_be_visible()
    second.get_by_role("button", name="Reject").tap()
    expect(second.get_by_text("Your answer “Reject” was not recorded")).to_be_visible()
    expect(second.get_by_text("Approve", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Succeeded")).to_be_visible()


def test_an_agent_calls_two_tools_and_asks_before_the_second(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text("{}")
    with shop() as (place, asked), scripted_model(script) as model:
        server = servers(WEFT_MODEL_DEV=model, WEFT_ALLOW_PRIVATE=place)
        page = contexts(server.url).page()
        user = Newcomer(page)
        user.add("agent")
        page.get_by_placeholder("Choose a model").click()
        page.get_by_role("option", name="dev:gpt-5-mini").click()
        for name, method, path in (("look_up", "GET", "orders/{{id}}"), ("pay", "POST", "pay")):
            user.press("Add a tool")
            page.get_by_role("option", name="HTTP request").click()
            expect(page.get_by_label("Name", exact=True)).to_be_focused()
            page.keyboard.type(name)
            page.get_by_label("Method").select_option(label=method)
            user.fill("URL", f"http://{place}/{path}")
        page.get_by_label("Ask a person").select_option(label="Before each call")
        user.fill("Prompt", "Look up id 17 and pay it.")
        user.press("Run")
        agent = user.card("Agent")
        expect(page.get_by_text("Agent is waiting for approval: Call pay?")).to_be_visible()
        expect(agent.get_by_text("asks first")).to_be_visible()
        assert asked == ["GET /orders/17"]
        user.press("Answer")
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()
        expect(page.get_by_role("button", name="Succeeded")).to_be_visible()
        expect(page.get_by_role("region", name="Canvas")).to_be_focused()
        assert asked == ["GET /orders/17", "POST /pay"]
        expect(agent).to_contain_text("The tool answered")


def test_a_webhook_is_tried_published_and_called(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    page = contexts(server.url, permissions=["clipboard-read", "clipboard-write"]).page()
    user = Newcomer(page)
    page.get_by_role("button", name="Triggers").click()
    expect(page.get_by_test_id("palette-start")).to_be_focused()
    page.get_by_role("button", name="Webhook").click()
    expect(user.card("Start")).to_have_count(0)  # nothing was done with it yet
    user.add("set", after="Webhook")
    user.fill("Value", "Hello <Webhook.body.hello>")
    user.card("Webhook").click()
    # A test event, before it is published.
    user.press("Try it before publishing")
    user.press("Listen for a test event")
    expect(page.get_by_role("button", name="Copy URL")).to_be_focused()
    expect(page.get_by_role("button", name="Send event")).to_be_in_viewport()
    sent(user.copied("Copy as curl"))
    expect(page.get_by_role("button", name="Succeeded")).to_be_visible()
    expect(page.get_by_label("Try the draft")).to_contain_text("world")
    # Published, and a real event.
    user.press("Publish")
    dialog = page.get_by_role("dialog", name="Publish")
    expect(dialog.get_by_label("Name of the workflow")).to_be_focused()
    page.keyboard.type("order hook")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Published version 1 of order hook.").first).to_be_visible()
    expect(page.get_by_role("button", name="Publish")).to_be_focused()
    page.get_by_role("button", name="Close").first.click()
    run = sent(user.copied("Copy as curl"))
    arrived = page.get_by_role("status").filter(has_text="A new run of version 1: succeeded")
    arrived.get_by_role("button", name="Show").click()
    page.get_by_role("button", name="Succeeded").click()
    last = page.get_by_label("Last run")
    expect(last.get_by_role("link", name="Open")).to_have_attribute("href", f"/runs/{run}")
    expect(last).to_contain_text("Hello world")


def overlap(a: dict[str, float], b: dict[str, float]) -> bool:
    return (
        a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
    )


def sent(command: str) -> str:
    """Run the command in a shell, as it was copied; the id of the run that it started."""
    done = subprocess.run(
        ["sh", "-c", command.replace("curl ", "curl -sS ", 1)], check=False, capture_output=True, text=True, timeout=60
    )
    assert not done.returncode, done.stderr
    return str(json.loads(done.stdout)["run"])

"""The pictures of the documentation, from a real server and real runs.

python -m tests.browser.screenshots [STATE ...]

writes docs/img: sixteen states (or those that are named), light and dark, 1440, 1024 and 390 pixels wide, and the
moving picture of the README (`film`).
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.browser import film, measure
from tests.browser.conftest import FLAGS
from tests.browser.editor import PAGE_S, Api, Editor
from tests.browser.get_chromium import find
from tests.browser.test_agent import dev_model, slow
from tests.browser.test_agent_sheet import AGENT
from tests.support.server import SyncServerProcess

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "img"
SIZES = {
    "wide": ViewportSize(width=1440, height=900),
    "1024": ViewportSize(width=1024, height=768),
    "phone": ViewportSize(width=390, height=844),
}
QUALITY = 0.85


def example(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "examples" / f"{name}.json").read_text("utf-8"))
    return document


class World(NamedTuple):
    """The servers in the pictures: one with workflows and runs, and one that is empty."""

    api: Api
    empty: Api
    agent: str
    asked: str
    failed: str
    chat: str
    question: str


CHAT = {
    "format": "weft/1",
    "name": "tea-shop",
    "description": "Answers customers, asks before it pays",
    "blocks": {
        "chat": {"type": "chat_trigger", "name": "Chat", "at": [0, 0], "params": {"title": "Tidewater support"}},
        "fee": {
            "type": "condition",
            "name": "Asks for money?",
            "at": [272, 0],
            "params": {"cases": [{"id": "yes", "when": '<chat.message>.includes("fee")'}, {"id": "no"}]},
        },
        "ask": {
            "type": "approval",
            "name": "Customer agrees",
            "at": [576, 0],
            "params": {
                "title": "Pay 20.00 EUR back to the card ending in 4421?",
                "text": "Arrives in 2 to 3 days.",
                "by": ["chat"],
            },
        },
        "answer": {
            "type": "response",
            "name": "Answer",
            "at": [880, 0],
            "params": {"body": "Your parcel left Leipzig on Monday and arrives tomorrow before noon."},
        },
    },
    "edges": [
        {"source": "chat", "target": "fee"},
        {"source": "fee", "handle": "yes", "target": "ask"},
        {"source": "fee", "handle": "no", "target": "answer"},
        {"source": "ask", "handle": "approve", "target": "answer"},
    ],
}
ORDERS: dict[str, Any] = {
    "format": "weft/1",
    "name": "orders",
    "description": "Reserves stock for each line and writes to the warehouse",
    "blocks": {
        "start": {"type": "start", "name": "Order arrives", "at": [0, 0]},
        "each": {
            "type": "loop",
            "name": "Each order line",
            "at": [272, 0],
            "size": [512, 224],
            "params": {"mode": "each", "items": "<start.lines>"},
        },
        "stock": {
            "type": "function",
            "name": "Reserve stock",
            "parent": "each",
            "at": [48, 48],
            "params": {
                "code": "if (<loop.item> > 90) throw new Error('409 held by another order'); return {held: <loop.item>}"
            },
        },
        "entry": {
            "type": "set",
            "name": "Write entry",
            "parent": "each",
            "at": [288, 48],
            "params": {"value": "<stock.result.held>"},
        },
        "big": {
            "type": "condition",
            "name": "Above 500 EUR?",
            "at": [848, 0],
            "params": {"cases": [{"id": "yes", "when": "<start.amount> > 500"}, {"id": "no"}]},
        },
        "ask": {
            "type": "approval",
            "name": "Ask the buyer",
            "at": [1136, -80],
            "params": {"title": "Buy for <start.amount> EUR?"},
        },
        "charge": {"type": "set", "name": "Charge", "at": [1136, 112], "params": {"value": "<start.amount>"}},
        "tell": {"type": "set", "name": "Write to the team", "at": [848, 272], "params": {"value": "sold out"}},
    },
    "edges": [
        {"source": "start", "target": "each"},
        {"source": "each", "handle": "body", "target": "stock"},
        {"source": "stock", "target": "entry"},
        {"source": "each", "handle": "error", "target": "tell"},
        {"source": "each", "target": "big"},
        {"source": "big", "handle": "yes", "target": "ask"},
        {"source": "big", "handle": "no", "target": "charge"},
        {"source": "ask", "handle": "approve", "target": "charge"},
    ],
}


def build(api: Api, empty: Api) -> World:
    for name in ("expense-approval", "parallel-fanout", "review-loop", "nested", "error-handling"):
        api.post("/api/workflows", {"document": example(name)})
    api.post("/api/workflows", {"document": CHAT})
    api.post("/api/workflows", {"document": ORDERS})
    asked = api.post(
        "/api/workflows/expense-approval/runs?wait=20", {"input": {"amount": 420, "employee": "Jo Lindqvist"}}
    )["run"]
    for n in range(60):
        lines = [(n * 37 + k * 23) % 94 for k in range(1 + n % 4)]
        api.post("/api/workflows/orders/runs", {"input": {"lines": lines, "amount": 40 + n * 13 % 600}})
    for cities in (["Perth", "Oslo", "Lima"], ["Quito"]):
        api.post("/api/workflows/parallel-fanout/runs?wait=20", {"input": {"cities": cities}})
    failed = api.run({**example("error-handling"), "name": "error-handling"}, wait_s=20)
    agent = api.run({**AGENT, "name": "support-desk"}, wait_s=20)
    [wait] = api.waits(asked)
    chat = urlsplit(api.get("/api/webhooks/chat:tea-shop:chat")["url"]).path
    return World(api, empty, agent, asked, failed, chat, urlsplit(wait["link"]).path)


def home(editor: Editor, world: World) -> None:
    editor.page.goto("/")
    expect(editor.page.get_by_text("parallel-fanout").first).to_be_visible()


def first_visit(editor: Editor, world: World) -> None:
    editor.page.goto(world.empty.url + "/")
    editor.page.get_by_role("button", name="New workflow").first.wait_for()


def editing(editor: Editor, world: World) -> None:
    editor.open(example("parallel-fanout"))
    editor.run()
    editor.has_status("join", "succeeded")
    editor.press("1")


def running(editor: Editor, world: World) -> None:
    editor.open_run(world.agent)
    editor.has_status("support", "waiting")


def step_sheet(editor: Editor, world: World) -> None:
    editing(editor, world)
    editor.select("shape")
    editor.press("Enter")
    expect(editor.at("step-sheet")).to_be_visible()


def agent_sheet(editor: Editor, world: World) -> None:
    editor.open_run(world.agent)
    editor.has_status("support", "waiting")
    editor.select("support")
    editor.press("Enter")
    expect(editor.at("agent-sheet")).to_be_visible()


def loom(editor: Editor, world: World) -> None:
    editor.page.goto("/loom/orders")
    expect(editor.page.locator(".loomcell").first).to_be_visible()


def publish(editor: Editor, world: World) -> None:
    changed = json.loads(json.dumps(ORDERS))
    changed["blocks"]["charge"]["params"]["value"] = "<start.amount> EUR"
    made = world.api.post("/api/drafts", {"document": changed, "name": "orders", "base_version": 1})["id"]
    editor.page.goto(f"/w/{made}")
    editor.is_ready("start")
    editor.at("publish").click()
    expect(editor.at("publish-dialog")).to_be_visible()


def settings(editor: Editor, world: World) -> None:
    editor.page.goto("/settings")
    editor.page.get_by_role("heading").first.wait_for()


def runs(editor: Editor, world: World) -> None:
    editor.page.goto("/runs")
    editor.page.locator("[data-testid^=run-]").first.wait_for()


def chat(editor: Editor, world: World) -> None:
    page = editor.page
    page.goto(world.chat)
    for n, message in enumerate(("Where is my order 1042?", "Then I would like the express fee back."), 1):
        page.get_by_label("Message", exact=True).fill(message)
        page.keyboard.press("Enter")
        expect(page.locator(f'li[data-n="{n}"]')).to_have_attribute("data-state", "answered" if n == 1 else "waiting")
    page.locator(".question").wait_for()


def question(editor: Editor, world: World) -> None:
    editor.page.goto(world.question)
    editor.page.get_by_role("button", name="Approve").wait_for()


def approvals(editor: Editor, world: World) -> None:
    editor.page.goto("/approvals")
    editor.page.locator(".waits__card").first.wait_for()


def far(editor: Editor, world: World) -> None:
    editor.page.goto(f"/w/{world.api.draft(measure.large())}")
    editor.page.locator(".canvas").wait_for()
    editor.page.wait_for_timeout(1500)
    editor.press("1")
    expect(editor.at("weave")).to_be_visible()
    editor.page.wait_for_timeout(1500)


def failed_run(editor: Editor, world: World) -> None:
    editor.open_run(world.failed)


def json_view(editor: Editor, world: World) -> None:
    editor.open(example("expense-approval"), "?view=json")
    expect(editor.at("json-editor").locator(".cm-content")).to_be_visible()


STATES: tuple[Callable[[Editor, World], None], ...] = (
    home,
    first_visit,
    editing,
    running,
    step_sheet,
    agent_sheet,
    loom,
    publish,
    settings,
    runs,
    chat,
    question,
    approvals,
    far,
    failed_run,
    json_view,
)


def take(browser: Browser, world: World, state: Callable[[Editor, World], None], encoder: Page) -> None:
    for scheme in ("light", "dark"):
        for size, viewport in SIZES.items():
            phone = size == "phone"
            patience_s = 4 if phone else PAGE_S
            expect.set_options(timeout=patience_s * 1000)
            context = browser.new_context(
                base_url=world.api.url,
                viewport=viewport,
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
                has_touch=phone,
                is_mobile=phone,
            )
            context.set_default_timeout(patience_s * 1000)
            editor = Editor(context.new_page(), world.api.url)
            name = state.__name__.replace("_", "-")
            try:
                try:
                    state(editor, world)
                except (AssertionError, PlaywrightError) as error:
                    if not phone:  # there is no canvas there: the picture shows what is in its place
                        print(f"{name}, {scheme}, {size}: {str(error)[:300]}", file=sys.stderr)
                editor.page.wait_for_timeout(600)  # pictures inside the page, such as thumbnails
                png = base64.b64encode(editor.page.screenshot()).decode()
                encoder.evaluate("delete globalThis.before")
                image = base64.b64decode(encoder.evaluate(film.ENCODE, [png, QUALITY])[-1])
                (PLACE / f"{name}-{scheme}-{size}.webp").write_bytes(image)
            finally:
                context.close()


def main(names: list[str]) -> None:
    expect.set_options(timeout=PAGE_S * 1000)
    PLACE.mkdir(parents=True, exist_ok=True)
    found = find()
    env: dict[str, str | float | bool] = {**os.environ, **found.env}
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as other,
        dev_model(slow(Path(other))) as model,
        sync_playwright() as playwright,
    ):
        servers = [SyncServerProcess(Path(each), {"WEFT_MODEL_DEV": model}) for each in (folder, other)]
        browser = playwright.chromium.launch(executable_path=found.path, headless=True, args=list(FLAGS), env=env)
        try:
            encoder = browser.new_page()
            world = build(*(Api(server.url) for server in servers))
            for state in STATES:
                if not names or state.__name__.replace("_", "-") in names:
                    take(browser, world, state, encoder)
            if not names or "film" in names:
                (PLACE / "film.webp").write_bytes(film.record(browser))
        finally:
            browser.close()
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main(sys.argv[1:])

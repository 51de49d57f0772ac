"""The pictures of the documentation, from a real server and real runs.

python -m tests.browser.screenshots [STATE ...]

writes docs/img: eighteen states (or those that are named), light and dark, 1440, 1024 and 390 pixels wide, and the
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

import httpx
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.browser import film, scenes
from tests.browser.conftest import FLAGS
from tests.browser.editor import PAGE_S, Api, Editor
from tests.browser.get_chromium import find
from tests.browser.test_agent_sheet import AGENT
from tests.browser.test_connecting import TOKEN, played
from tests.browser.test_lane import document_of
from tests.browser.test_rewind import turn_two
from tests.support.dev_model import scripted_model
from tests.support.server import SyncServerProcess

ROOT = Path(__file__).parents[2]
ORDER = Path(__file__).with_name("scene_order.py")
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
    refunded: str
    chat: str
    question: str


def build(api: Api, empty: Api, services: str) -> World:
    """`services`: `host:port` of those that connections are for."""
    for name in ("expense-approval", "parallel-fanout", "review-loop", "nested", "error-handling"):
        api.post("/api/workflows", {"document": example(name)})
    api.post("/api/workflows", {"document": scenes.CHAT})
    api.post("/api/workflows", {"document": scenes.ORDERS})
    asked = api.post(
        "/api/workflows/expense-approval/runs?wait=20", {"input": {"amount": 420, "employee": "Jo Lindqvist"}}
    )["run"]
    for n in range(60):
        lines = [(n * 37 + k * 23) % 94 for k in range(1 + n % 4)]
        api.post("/api/workflows/orders/runs", {"input": {"lines": lines, "amount": 40 + n * 13 % 600}})
    api.post("/api/workflows", {"document": scenes.INVOICES})
    for n in range(24):
        order = {"order": f"A-{20872 + n}", "lines": n % 9, "fail": 2 * (n % 4 == 1)}
        api.post("/api/workflows/invoice-reader/runs?wait=20", {"input": order})
    for cities in (["Perth", "Oslo", "Lima"], ["Quito"]):
        api.post("/api/workflows/parallel-fanout/runs?wait=20", {"input": {"cities": cities}})
    api.run({**example("error-handling"), "name": "error-handling"}, wait_s=20)
    [failed, *_] = [run["id"] for run in api.get("/api/runs", status="failed", workflow="invoice-reader")["runs"]]
    agent = api.run({**AGENT, "name": "support-desk"}, wait_s=20)
    refunded = api.run(scenes.REFUNDS, wait_s=20)
    [wait] = api.waits(refunded)
    api.post(f"/api/runs/{refunded}/waits/{wait['id']}", {"action": "approve", "fields": {}})
    api.until(refunded, "succeeded")
    for name, secret in (("team-chat", TOKEN), ("warehouse", "one that may only read"), ("shop-mail", TOKEN)):
        spec = {"kind": "bearer", "hosts": [f"http://{services}"], "check_url": f"http://{services}/me"}
        httpx.put(f"{api.url}/api/connections/{name}", json={**spec, "secret": secret}).raise_for_status()
    [wait] = api.waits(asked)
    chat = urlsplit(api.get("/api/webhooks/chat:tea-shop:chat")["url"]).path
    return World(api, empty, agent, asked, failed, refunded, chat, urlsplit(wait["link"]).path)


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
    editor.open(scenes.support())
    editor.run()
    expect(editor.block("support").locator(".agent__thought")).to_contain_text("late by one day")
    editor.press("1")


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
    editor.page.locator('[data-exit="each error"]').focus()
    editor.page.keyboard.press("Enter")
    expect(editor.at("loom-runs")).to_be_visible()


def publish(editor: Editor, world: World) -> None:
    changed = json.loads(json.dumps(scenes.ORDERS))
    changed["blocks"]["big"]["params"]["cases"][0]["when"] = "<start.amount> > 340"
    made = world.api.post("/api/drafts", {"document": changed, "name": "orders", "base_version": 1})["id"]
    editor.page.goto(f"/w/{made}")
    editor.is_ready("start")
    editor.at("publish").click()
    expect(editor.at("publish-dialog")).to_be_visible()


def rewind(editor: Editor, world: World) -> None:
    seq = next(e["seq"] for e in reversed(world.api.events(world.refunded)) if e["type"] == "step.started")
    editor.open_run(world.refunded, f"?seq={seq}&rewind=1")
    turn_two(editor)
    words = editor.at("rewind-turn").get_by_label("Instructions")
    words.fill(words.input_value().replace("the whole order", "the shipping only"))
    editor.at("rewind-continue").click()
    expect(editor.at("futures")).to_be_visible()
    expect(editor.at("both-turns")).to_contain_text("shipping")


def settings(editor: Editor, world: World) -> None:
    editor.page.goto("/settings?page=connections")
    for name in ("team-chat", "warehouse"):
        editor.at(f"test-{name}").click()
        expect(editor.at(f"connection-{name}").locator(".teststeps")).to_be_visible()


def runs(editor: Editor, world: World) -> None:
    page = editor.page
    page.goto("/runs?workflow=invoice-reader&status=failed")
    rows = page.locator("[data-testid^=run-]")
    rows.first.wait_for()
    for n in (0, 1, 3):
        rows.nth(n).get_by_role("checkbox").check()
    page.get_by_role("combobox", name="Filter runs").click()


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
    editor.page.goto(f"/w/{world.api.draft(scenes.fulfilment())}")
    editor.is_ready("start")
    editor.run()
    editor.select("start")
    editor.press("Escape")
    editor.press("1")
    expect(editor.at("weave")).to_be_visible()
    editor.page.wait_for_timeout(4000)  # until its run stands still


def failed_run(editor: Editor, world: World) -> None:
    editor.open_run(world.failed)


def lane(editor: Editor, world: World) -> None:
    editor.page.goto(f"/runs/{world.api.run(document_of(ORDER), {'order': 'A-17'}, wait_s=20)}")
    editor.at("lane-body-3").click()
    expect(editor.at("lane-item")).to_be_visible()


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
    rewind,
    loom,
    publish,
    settings,
    runs,
    chat,
    question,
    approvals,
    far,
    failed_run,
    lane,
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
        scripted_model(scenes.script(Path(other))) as model,
        played() as services,
        sync_playwright() as playwright,
    ):
        environ = {"WEFT_MODEL_DEV": model, "WEFT_ALLOW_PRIVATE": services, "WEFT_FUNCTIONS": str(ORDER)}
        servers = [SyncServerProcess(Path(each), environ) for each in (folder, other)]
        browser = playwright.chromium.launch(executable_path=found.path, headless=True, args=list(FLAGS), env=env)
        try:
            encoder = browser.new_page()
            world = build(Api(servers[0].url), Api(servers[1].url), services)
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

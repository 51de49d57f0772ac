"""The run of a durable function: its calls beside the code that makes them, live, and what is done from there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor
from tests.browser.test_a11y import findings

pytestmark = pytest.mark.proof

FLOW = """
import weft


@weft.step(effect="none")
async def pack(part: int) -> str:
    if part == 2:
        raise ValueError("part 2 is missing")
    return f"box {part}"


@weft.durable
async def told(text: str) -> str:
    return text


@weft.durable
async def order(order: str, many: int = 3) -> str:
    with weft.group("parts", order=order):
        await weft.gather(pack(0), pack(1))
        try:
            await pack(2)
        except weft.StepFailed:
            pass
    for part in range(3, many):
        await pack(part)
    weft.state({"at": "courier"})
    await weft.first(weft.signal("courier"), weft.sleep(days=3))
    await told("sent")
    answer = await weft.approve("Did it arrive?", actions=["yes", "no"])
    return answer.action
"""


def document_of(path: Path) -> dict[str, Any]:
    """That of the function `order` in a file, which a server has by WEFT_FUNCTIONS."""
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None and found.loader is not None
    flow = importlib.util.module_from_spec(found)
    found.loader.exec_module(flow)
    document: dict[str, Any] = flow.order.document()
    return document


def opened(servers: Servers, contexts: Contexts, folder: Path, **size: Any) -> tuple[Editor, dict[str, Any]]:
    path = folder / "flow.py"
    path.write_text(FLOW)
    server = servers(WEFT_FUNCTIONS=str(path))
    return Editor(contexts(server.url, **size).page(), server.url), document_of(path)


def started(editor: Editor, document: dict[str, Any], **input: Any) -> str:
    run: str = editor.api.post("/api/runs", {"document": document, "input": {"order": "A-17", **input}})["run"]
    editor.page.goto(f"/runs/{run}")
    return run


def row(page: Page, n: int) -> Any:
    return page.get_by_test_id(f"lane-body-{n}")


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(FLOW.splitlines(), 1) if text in line)


def test_a_run_is_followed_and_answered_from_its_lane(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    editor, document = opened(servers, contexts, tmp_path)
    page = editor.page
    run = started(editor, document)
    expect(page.get_by_test_id("lane-band")).to_have_text("parts order=A-17")
    expect(row(page, 3)).to_contain_text("part 2 is missing")
    expect(row(page, 4)).to_have_attribute("data-status", "waiting")
    expect(page.get_by_test_id("lane-state")).to_contain_text('{"at":"courier"}')
    row(page, 4).get_by_role("button", name="Send signal").click()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(row(page, 4)).to_have_attribute("data-status", "succeeded")
    expect(row(page, 5)).to_have_attribute("data-status", "cancelled")
    expect(row(page, 6).get_by_role("link", name="Open run")).to_be_visible()
    row(page, 7).get_by_role("button", name="Answer").click()
    page.get_by_role("button", name="Yes").click()
    expect(row(page, 7)).to_have_attribute("data-status", "succeeded")
    assert editor.api.until(run, "succeeded")
    assert editor.api.get(f"/api/runs/{run}")["output"] == "yes"


def test_a_call_and_its_line_choose_each_other(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    editor, document = opened(servers, contexts, tmp_path)
    page = editor.page
    started(editor, document)
    row(page, 3).click()
    line = line_of("await pack(2)")
    expect(page.locator(".source__line[aria-current]")).to_have_attribute("data-line", str(line))
    panel = page.get_by_test_id("lane-item")
    expect(panel).to_contain_text("part 2 is missing")
    expect(panel.get_by_test_id("traceback")).to_be_visible()
    page.locator(f".source__line[data-line='{line_of('weft.gather')}']").click()
    expect(row(page, 1)).to_have_attribute("aria-selected", "true")
    expect(panel).to_contain_text("box 0")
    page.get_by_test_id("lane-rows").focus()
    page.keyboard.press("End")
    expect(row(page, 5)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(row(page, 4)).to_have_attribute("aria-selected", "true")
    page.wait_for_url("**step=4**")
    page.reload()
    expect(row(page, 4)).to_have_attribute("aria-selected", "true")


def test_the_tape_cuts_it_and_a_fork_continues_after_a_call(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    editor, document = opened(servers, contexts, tmp_path)
    page = editor.page
    run = started(editor, document)
    row(page, 3).click()
    panel = page.get_by_test_id("lane-item")
    panel.get_by_role("button", name="event").first.click()  # at which it began
    expect(row(page, 3)).to_have_attribute("data-status", "running")
    expect(row(page, 4)).to_have_count(0)
    page.keyboard.press("End")
    row(page, 4).wait_for()
    row(page, 3).click()
    panel.get_by_test_id("lane-fork").click()
    page.get_by_test_id("fork").click()
    page.wait_for_url(lambda url: "/runs/" in url and run not in url)
    expect(row(page, 4)).to_have_attribute("data-status", "waiting")


def test_thousands_of_calls(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    editor, document = opened(servers, contexts, tmp_path)
    page = editor.page
    run = started(editor, document, many=1_200)
    editor.api.until(run, "waiting")
    page.reload()
    row(page, 1_202).wait_for()
    assert page.locator(".lane__row").count() < 100
    page.get_by_test_id("lane-rows").focus()
    page.keyboard.press("Home")
    expect(row(page, 1)).to_have_attribute("aria-selected", "true")


def test_before_a_run_it_is_its_code(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    editor, document = opened(servers, contexts, tmp_path)
    page = editor.page
    editor.page.goto(f"/w/{editor.api.draft(document)}")
    source = page.get_by_test_id("source")
    expect(source.locator(f"[data-line='{line_of('weft.gather')}'] .source__mark")).to_have_attribute(
        "title", "step pack"
    )
    page.get_by_role("button", name="Drawing").click()
    expect(editor.block("body")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_it_can_be_used_by_all(servers: Servers, contexts: Contexts, tmp_path: Path, scheme: str, width: int) -> None:
    editor, document = opened(
        servers, contexts, tmp_path, color_scheme=scheme, viewport={"width": width, "height": 844}
    )
    page = editor.page
    started(editor, document)
    row(page, 4).wait_for()
    assert not findings(page)
    row(page, 3).click()
    page.get_by_test_id("lane-item").wait_for()
    assert not findings(page)

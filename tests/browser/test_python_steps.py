"""A workflow that Python functions became: no block has a place yet, its steps are cards, one has a heartbeat."""

from __future__ import annotations

import importlib.util
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, box_of, document
from tests.support.python_flow import FAILING

FLOW = """import weft


@weft.step(effect="read", retries=2)
def load(order: str) -> list[float]:
    return [2.5, 1]


@weft.step(effect="none")
def discounted(price: float) -> float:
    return price * 0.9


@weft.step
def pay(order: str, amounts: list[float]) -> str:
    return f"paid {sum(amounts)} for {order}"


@weft.workflow
async def order(order: str = "A-17"):
    return await pay(order, await weft.each(await load(order), discounted))
"""
EACH = "each-discounted"


def traced(path: Path) -> dict[str, Any]:
    """The document of the workflow `order` in this file."""
    found = importlib.util.spec_from_file_location("flow", path)
    assert found is not None and found.loader is not None
    flow = importlib.util.module_from_spec(found)
    found.loader.exec_module(flow)
    traced: dict[str, Any] = flow.order.document()
    return traced


def test_functions_on_the_canvas(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(FLOW)
    flow = traced(path)
    assert not any("at" in block for block in flow["blocks"].values())
    server = servers(WEFT_FUNCTIONS=str(path))
    wide = {"width": 1600, "height": 800}  # all of it can be seen
    editor = Editor(contexts(server.url, viewport=wide).page(), server.url)
    editor.open(flow)
    stands_apart(editor, flow)
    expect(editor.block("pay")).to_contain_text("Call flow.pay")
    set_a_heartbeat(editor)
    editor.run()
    editor.has_status("pay", "succeeded")
    editor.select("pay")
    editor.at("tab-output").click()
    expect(editor.page.get_by_text("paid 3.15 for A-17").first).to_be_visible()


def test_the_traceback_of_a_function(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(FAILING)
    server = servers(WEFT_FUNCTIONS=str(path))
    editor = Editor(contexts(server.url).page(), server.url)
    editor.open(traced(path))
    editor.run()
    editor.has_status("price", "failed")
    editor.select("price")
    editor.at("tab-output").click()
    traceback = editor.page.get_by_label("Traceback", exact=True)
    expect(traceback).to_be_hidden()
    editor.at("traceback").get_by_text("Traceback").first.click()
    expect(traceback).to_contain_text(f'File "{path}", line 5, in helper')
    expect(traceback).to_contain_text('return prices["missing"]')


BEFORE = """import weft


@weft.step(effect="none")
def quote(order: str) -> str:
    return f"a quote for {order}"
"""
AFTER = """import weft


@weft.step(effect="none")
def offer(order: str) -> str:
    return f"an offer for {order}"
"""
ASKS = document(
    {
        "ask": {"type": "approval", "at": [288, 0], "params": {"title": "Go on?"}},
        "quote": {
            "type": "python",
            "at": [576, 0],
            "params": {"function": "shop.quote", "arguments": {"order": "A-17"}},
        },
    },
    [("start", "ask"), ("ask", "approve", "quote")],
)


def test_a_run_whose_function_was_renamed(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    """It waits: its page and the list of runs name the function, until a server has it again."""
    path = tmp_path / "shop.py"
    path.write_text(BEFORE)
    server = servers(WEFT_FUNCTIONS=str(path))
    port = str(urlsplit(server.url).port)
    watched = contexts(server.url)
    watched.allow("ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|Failed to fetch")
    editor = Editor(watched.page(), server.url)
    run = editor.api.run(ASKS, wait_s=20)
    server.stop(60)

    path.write_text(AFTER)
    server = servers(WEFT_PORT=port, WEFT_FUNCTIONS=str(path))
    editor.open_run(run)
    (wait,) = editor.api.waits(run)
    editor.api.post(f"/api/runs/{run}/waits/{wait['id']}", {"action": "approve"})
    lacks = editor.at("run-lacks")
    expect(lacks).to_contain_text("Python function 'shop.quote' (this process has shop.offer)")
    expect(lacks).to_contain_text("It continues when a process that has it starts")
    editor.page.goto("/runs")
    row = editor.at(f"run-{run}")
    expect(row.get_by_test_id("lacks")).to_have_text(
        "Waits for Python function 'shop.quote' (this process has shop.offer)"
    )
    editor.open_run(run)
    expect(lacks).to_be_visible()
    server.stop(60)

    path.write_text(BEFORE + AFTER)
    servers(WEFT_PORT=port, WEFT_FUNCTIONS=str(path))
    editor.has_status("quote", "succeeded")
    expect(lacks).to_have_count(0)


def stands_apart(editor: Editor, flow: dict[str, Any]) -> None:
    """No card stands upon another one, what is in a container lies inside it, and edges lead to the right."""
    boxes = {id: box_of(editor.block(id)) for id in flow["blocks"]}
    inner, outer = boxes["discounted"], boxes[EACH]
    assert outer["x"] < inner["x"] and inner["x"] + inner["width"] < outer["x"] + outer["width"]
    assert outer["y"] < inner["y"] and inner["y"] + inner["height"] < outer["y"] + outer["height"]
    for (one, a), (other, b) in combinations(boxes.items(), 2):
        if {one, other} != {EACH, "discounted"}:
            apart = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert apart or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"], (one, other)
    for edge in flow["edges"]:
        assert boxes[edge["source"]]["x"] < boxes[edge["target"]]["x"], edge


def set_a_heartbeat(editor: Editor) -> None:
    """Only functions and blocks that send heartbeats have the field; the least is 100 milliseconds."""
    editor.select(EACH)
    expect(editor.at("field-items")).to_be_visible()
    expect(editor.at("field-policy.heartbeat_timeout_ms")).to_have_count(0)
    editor.select("load")
    expect(editor.at("field-function")).to_have_value('"flow.load"')
    heartbeat = editor.at("field-policy.heartbeat_timeout_ms")
    heartbeat.fill("50")
    editor.at("field-function").focus()  # red comes once a field was left
    expect(heartbeat).to_have_attribute("aria-invalid", "true")  # at least 100
    editor.at("unit-policy.heartbeat_timeout_ms").select_option("seconds")
    heartbeat.fill("5")
    heartbeat.press("Tab")
    editor.is_saved()
    policy = editor.stored()["blocks"]["load"]["policy"]
    assert policy == {"retry": {"max_attempts": 3}, "on_lost": "retry", "heartbeat_timeout_ms": 5000}

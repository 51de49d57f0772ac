"""Runs as they are seen: live, afterwards, and at any moment of theirs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Api, Editor, box_of, document

FAILS = {"type": "function", "params": {"code": "throw new Error('no more paper')"}}


def test_check_17_run_form_wants_what_is_needed(editor: Editor) -> None:
    schema = {
        "type": "object",
        "properties": {"who": {"type": "string", "title": "Who"}, "n": {"type": "integer", "title": "How many"}},
        "required": ["who"],
    }
    blocks = {"a": {"type": "set", "at": [288, 0], "params": {"value": "<start.who>: <start.n>"}}}
    editor.open(document(blocks, [("start", "a")], input=schema))
    editor.at("run").click()
    dialog = editor.at("run-dialog")
    expect(dialog.get_by_label("Who")).to_be_visible()
    editor.at("run-start").click()
    expect(editor.at("run-start")).to_have_attribute("aria-disabled", "true")
    expect(dialog.get_by_label("Who")).to_have_attribute("aria-invalid", "true")
    assert editor.page.evaluate("window.__app.run.getState().id") is None
    dialog.get_by_label("Who").fill("Ada")
    dialog.get_by_label("How many").fill("3")
    editor.at("run-start").click()
    expect(dialog).to_have_count(0)
    editor.has_status("a", "succeeded")
    assert editor.api.get(f"/api/runs/{editor.run_id()}")["input"] == {"who": "Ada", "n": 3}
    editor.select("a")
    editor.at("tab-input").click()
    expect(editor.at("inspector")).to_contain_text("Ada: 3")


def test_text_that_is_no_json_yet_starts_no_run(editor: Editor) -> None:
    """Before, the run started with the last value that could be read."""
    schema = {"type": "object", "properties": {"data": {"type": "object", "title": "Data", "x-ui": {"widget": "json"}}}}
    blocks = {"a": {"type": "set", "at": [288, 0], "params": {"value": "<start.data>"}}}
    editor.open(document(blocks, [("start", "a")], input=schema))
    editor.at("run").click()
    dialog = editor.at("run-dialog")
    field = editor.at("field-data")
    field.fill('{"n": 1}')
    field.fill('{"n": 1')
    editor.at("run-start").click()
    expect(dialog).to_contain_text("Enter valid JSON.")
    assert editor.page.evaluate("window.__app.run.getState().id") is None
    field.fill('{"n": 2}')
    editor.at("run-start").click()
    expect(dialog).to_have_count(0)
    editor.has_status("a", "succeeded")
    assert editor.api.get(f"/api/runs/{editor.run_id()}")["input"] == {"data": {"n": 2}}


def test_check_18_live_statuses_and_streamed_text(editor: Editor, tmp_path: Path) -> None:
    """One block may run at a time, so the second one is queued until the first is let go."""
    first, go = tmp_path / "first", tmp_path / "go"
    blocks = {
        "hold": {"type": "speak", "at": [288, 160], "params": {"text": "wait", "until": str(first)}},
        "talk": {"type": "speak", "at": [288, 0], "params": {"text": "one two three four", "until": str(go)}},
        "after": {"type": "set", "at": [576, 0], "params": {"value": 1}},
    }
    edges = [("start", "hold"), ("start", "talk"), ("talk", "after")]
    editor.open(document(blocks, edges, settings={"max_concurrency": 1}))
    editor.page.evaluate(
        """() => {
          window.seen = []
          new MutationObserver(() => {
            const now = document.querySelector('[data-testid="block-talk"]')?.dataset.status
            if (now && window.seen.at(-1) !== now) window.seen.push(now)
          }).observe(document.body, {
            subtree: true, childList: true, attributes: true, attributeFilter: ['data-status'],
          })
        }"""
    )
    editor.run()
    editor.has_status("hold", "running")
    editor.has_status("talk", "queued")
    first.touch()
    editor.has_status("talk", "running")
    expect(editor.block("talk").get_by_test_id("ticker")).to_contain_text("three four")
    editor.has_status("talk", "running")
    go.touch()
    editor.has_status("after", "succeeded")
    editor.has_status("talk", "succeeded")
    seen = editor.page.evaluate("window.seen")
    assert [each for each in seen if each != "idle"] == ["queued", "running", "succeeded"], seen


def test_check_19_failure_is_on_the_card_and_e_goes_there(editor: Editor) -> None:
    blocks = {
        "each": {"type": "loop", "at": [288, 0], "size": [400, 240], "params": {"mode": "for", "count": 1}},
        "bad": {**FAILS, "name": "Print", "parent": "each", "at": [48, 80]},
    }
    run = editor.api.run(document(blocks, [("start", "each"), ("each", "body", "bad")]), wait_s=20)
    editor.open_run(run)
    editor.has_status("bad", "failed")
    expect(editor.block("bad")).to_contain_text("no more paper")
    editor.at("canvas").click(position={"x": 8, "y": 8})
    expect(editor.block("bad")).to_have_attribute("data-selected", "false")
    assert editor.selected() == []
    editor.press("e")
    expect(editor.block("bad")).to_have_attribute("data-selected", "true")
    row = editor.at("trace-bad@each#0")
    expect(row).to_be_visible()
    expect(row).to_have_attribute("aria-selected", "true")
    expect(row).to_contain_text("no more paper")


def test_check_20_untaken_branch_is_skipped_and_says_why(editor: Editor) -> None:
    cases = [{"id": "yes", "title": "yes", "when": "true"}, {"id": "no", "title": "no"}]
    blocks = {
        "check": {"type": "condition", "name": "Which", "at": [288, 0], "params": {"cases": cases}},
        "a": {"type": "set", "at": [640, 0], "params": {"value": 1}},
        "b": {"type": "set", "at": [640, 160], "params": {"value": 2}},
    }
    doc = document(blocks, [("start", "check"), ("check", "yes", "a"), ("check", "no", "b")])
    editor.open_run(editor.api.run(doc, wait_s=20))
    editor.has_status("a", "succeeded")
    editor.has_status("b", "skipped")
    expect(editor.block("b")).to_have_attribute("title", "Skipped: branch of Which not taken")
    dead = editor.edge("check", "b", "no")
    expect(dead).to_have_attribute("data-state", "dead")
    expect(dead.locator(".edge__label")).to_have_text("no · skipped")
    expect(dead.locator("title")).to_contain_text("Skipped: Which took branch “yes”")
    dashes = "(line) => getComputedStyle(line).strokeDasharray"
    assert dead.locator(".edge__line").evaluate(dashes) != "none"
    assert editor.edge("check", "a", "yes").locator(".edge__line").evaluate(dashes) == "none"


def test_check_21_iterations_are_stepped_through(editor: Editor) -> None:
    code = "if (<each.index> === 8) throw new Error('ninth'); return 'round ' + <each.index>"
    blocks = {
        "each": {
            "type": "loop",
            "name": "Each",
            "at": [288, 0],
            "size": [560, 240],
            "params": {"mode": "for", "count": 12},
        },
        "note": {"type": "set", "parent": "each", "at": [32, 80], "params": {"value": "given <each.index>"}},
        "work": {"type": "function", "parent": "each", "at": [304, 80], "params": {"code": code}},
    }
    doc = document(blocks, [("start", "each"), ("each", "body", "note"), ("note", "work")])
    editor.open_run(editor.api.run(doc, wait_s=20))
    editor.select("note")
    count, inspector = editor.at("iter-each-count"), editor.at("inspector")
    expect(count).to_have_text("#9")
    editor.at("tab-output").click()
    expect(inspector).to_contain_text("given 8")
    editor.at("iter-each-prev").click()
    expect(count).to_have_text("#8")
    expect(inspector).to_contain_text("given 7")
    editor.at("tab-input").click()
    expect(inspector).to_contain_text("given 7")
    editor.has_status("work", "succeeded")
    editor.page.get_by_role("tab", name="Trace").click()
    expect(editor.at("trace-note@each#7")).to_have_attribute("aria-selected", "true")
    editor.at("iter-each-prev").click()
    editor.at("iter-each-next").click()
    expect(count).to_have_text("#8")
    editor.at("iter-each-prev").click()
    expect(inspector).to_contain_text("given 6")
    expect(editor.at("trace-note@each#6")).to_have_attribute("aria-selected", "true")
    editor.at("iter-each-failed").click()
    expect(count).to_have_text("#9")
    editor.has_status("work", "failed")
    expect(inspector).to_contain_text("given 8")


def test_check_24_cancel_and_nothing_runs_on(editor: Editor, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    talk = {"type": "speak", "params": {"text": "on and on", "until": str(stop)}}
    blocks = {"a": {**talk, "at": [288, 0]}, "b": {"type": "wait", "at": [288, 160], "params": {"seconds": 600}}}
    editor.open_run(editor.api.run(document(blocks, [("start", "a"), ("start", "b")])))
    editor.has_status("a", "running")
    editor.has_status("b", "waiting")
    editor.at("cancel").click()
    expect(editor.at("cancel")).to_have_text(re.compile("^Cancelling"))
    # The button says so at once; until the run has heard of it, the block may end by itself.
    editor.until("window.__app.run.getState().head.status === 'cancelling'")
    stop.touch()
    editor.has_status("a", "cancelled")
    editor.has_status("b", "cancelled")
    expect(editor.at("cancel")).to_have_count(0)
    assert editor.api.status(editor.run_id()) == "cancelled"


def test_check_26_tape_shows_every_moment(editor: Editor) -> None:
    cases = [{"id": "yes", "title": "yes", "when": "true"}, {"id": "no", "title": "no"}]
    blocks = {
        "a": {"type": "set", "at": [288, 0], "params": {"value": 1}},
        "check": {"type": "condition", "at": [560, 0], "params": {"cases": cases}},
        "b": {"type": "set", "at": [864, 0], "params": {"value": 2}},
        "c": {"type": "set", "at": [864, 160], "params": {"value": 3}},
        "work": {"type": "function", "at": [1136, 0], "params": {"code": "return 4"}},
    }
    edges = [("start", "a"), ("a", "check"), ("check", "yes", "b"), ("check", "no", "c"), ("b", "work")]
    run = editor.api.run(document(blocks, edges), wait_s=20)
    events = editor.api.events(run)
    editor.open_run(run)
    editor.has_status("work", "succeeded")
    tape = editor.at("tape")
    expect(tape).to_have_attribute("aria-valuenow", str(len(events)))
    box = box_of(tape)
    left, y = box["x"] + 14, box["y"] + box["height"] / 2
    pitch = min(160, (box["width"] - 28) / (len(events) - 1))
    mouse = editor.page.mouse
    mouse.move(left + pitch * (len(events) - 1), y)
    mouse.down()
    mouse.move(left + pitch * (len(events) // 2), y, steps=6)
    mouse.up()
    expect(editor.at("connection")).to_have_attribute("data-mode", "replay")
    seq = int(tape.get_attribute("aria-valuenow") or 0)
    assert 0 < seq < len(events)
    _is_painted(editor, events, seq, blocks)
    editor.press("End")
    expect(tape).to_have_attribute("aria-valuenow", str(len(events)))
    editor.has_status("work", "succeeded")
    editor.open_run(run, f"?seq={seq - 1}")
    expect(editor.at("tape")).to_have_attribute("aria-valuenow", str(seq - 1))
    _is_painted(editor, events, seq - 1, blocks)


ENDS = {
    "node.started": "running",
    "node.succeeded": "succeeded",
    "node.skipped": "skipped",
    "node.failed": "failed",
}


def _is_painted(editor: Editor, events: list[dict[str, Any]], seq: int, blocks: dict[str, Any]) -> None:
    """The canvas says what the journal says up to `seq`; a block it does not name yet is idle or queued."""
    told: dict[str, str] = {}
    for event in events[:seq]:
        if event["type"] in ENDS:
            told[event["block"]] = ENDS[event["type"]]
    for each in blocks:
        if each in told:
            editor.has_status(each, told[each])
        else:
            expect(editor.block(each)).to_have_attribute("data-status", re.compile("^(idle|queued)$"))


@pytest.mark.proof
def test_check_27_eight_tabs_follow_one_run(contexts: Contexts, servers: Servers, tmp_path: Path) -> None:
    """HTTP/1.1 gives a host six connections: with a stream for each tab the last ones would not even load. The server's
    log has every stream that was opened."""
    blocks = {
        "ask": {"type": "signal", "at": [288, 0], "params": {"name": "go"}},
        "end": {"type": "set", "at": [576, 0]},
    }
    log = tmp_path / "server.log"
    api = Api(servers(log=log, WEFT_LOG="info").url)
    run = api.run(document(blocks, [("start", "ask"), ("ask", "end")]), wait_s=20)
    context = contexts(api.url)
    tabs = [Editor(context.page(), api.url) for _ in range(8)]
    for tab in tabs:
        tab.open_run(run)
        tab.has_status("ask", "waiting")
        expect(tab.at("connection")).to_have_attribute("data-mode", "live")
    api.post(f"/api/runs/{run}/signals/go", {"payload": 1})
    for tab in tabs:
        tab.has_status("end", "succeeded")
    asked = [line for line in log.read_text("utf-8").splitlines() if f"GET /api/runs/{run}/events?" in line]
    pages = [line for line in asked if "limit=" in line]
    assert len(pages) >= len(tabs), "every tab reads what has been"
    assert len(asked) - len(pages) == 1, asked

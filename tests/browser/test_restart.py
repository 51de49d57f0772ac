"""The server dies under a run that is being looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers, Watched
from tests.browser.editor import Editor, document

LEASE_MS = "1000"  # what a killed process keeps its runs for


def doc(go: Path) -> dict[str, Any]:
    """Something before, a block that runs until the file is there, and something after that reads both."""
    blocks = {
        "before": {"type": "set", "at": [288, 0], "params": {"value": {"n": 7}}},
        "talk": {"type": "speak", "at": [576, 0], "params": {"text": "on and on", "until": str(go)}},
        "after": {"type": "set", "at": [864, 0], "params": {"value": "<before.n>: <talk.text>"}},
    }
    return document(blocks, [("start", "before"), ("before", "talk"), ("talk", "after")])


def test_check_25_killed_and_started_again(contexts: Contexts, servers: Servers, tmp_path: Path) -> None:
    server = servers(WEFT_LEASE_MS=LEASE_MS)
    port = str(urlsplit(server.url).port)
    watched = contexts(server.url)
    watched.allow("ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|Failed to fetch")
    editor = Editor(watched.page(), server.url)
    run = editor.api.run(doc(tmp_path / "go"))
    editor.open_run(run)
    editor.has_status("talk", "running")
    chip = editor.at("connection")
    expect(chip).to_have_attribute("data-mode", "live")
    editor.page.evaluate(
        """() => {
          const { net } = window.__app
          window.modes = [net.getState().mode]
          net.subscribe(({ mode }) => { if (window.modes.at(-1) !== mode) window.modes.push(mode) })
        }"""
    )

    server.kill()
    expect(chip).to_have_attribute("data-mode", "offline")
    expect(chip).to_contain_text("Connection lost")
    stood = editor.at("duration").text_content()
    # Two more tries fail: that takes longer than the clock would need to move on.
    for _ in range(2):
        editor.until("(at) => window.__app.net.getState().retryAt > at", arg=editor.page.evaluate(RETRY_AT))
    assert editor.at("duration").text_content() == stood

    servers(WEFT_PORT=port)
    editor.until("window.__app.net.getState().mode === 'live'")
    expect(chip).to_have_attribute("data-mode", "live")
    assert editor.page.evaluate("window.modes") == ["live", "offline", "catching", "live"]
    expect(editor.block("talk")).to_have_attribute("data-status", "running")
    (tmp_path / "go").touch()
    for block in ("start", "before", "talk", "after"):
        editor.has_status(block, "succeeded")
    expect(editor.block("talk")).to_contain_text("Resumed after a restart")
    expect(editor.block("talk").get_by_role("img", name="resumed after a restart")).to_be_visible()
    expect(editor.block("before")).not_to_contain_text("restart")
    editor.api.until(run, "succeeded")
    lost = [event for event in editor.api.events(run) if event["type"] == "retry.scheduled"]
    # More than once, if the first server was so slow that it lost its own short lease.
    assert {(event["block"], event["data"]["error"]["code"]) for event in lost} == {("talk", "attempt_lost")}

    undisturbed = editor.api.run(doc(tmp_path / "go"), wait_s=20)
    assert outcome(editor, run) == outcome(editor, undisturbed)


RETRY_AT = "window.__app.net.getState().retryAt"


def outcome(editor: Editor, run: str) -> dict[str, Any]:
    """Status and output of the run and of every block of it."""
    view = editor.api.get(f"/api/runs/{run}")
    nodes = {each: editor.api.get(f"/api/runs/{run}/nodes/{each}") for each in ("start", "before", "talk", "after")}
    return {
        "run": (view["status"], view["output"]),
        **{name: (node["status"], node["output"], node["route"]) for name, node in nodes.items()},
    }


def test_a_stream_that_cannot_even_be_asked_for_is_a_lost_one(editor: Editor, watched: Watched, tmp_path: Path) -> None:
    """The server goes before the page has the script of its worker: it says so, and asks again."""
    watched.allow("ERR_FAILED")
    watched.context.route("**/events.worker*", lambda route: route.abort())
    run = editor.api.run(doc(tmp_path / "go"))
    editor.open_run(run)
    editor.has_status("talk", "running")
    chip = editor.at("connection")
    expect(chip).to_have_attribute("data-mode", "offline")
    watched.context.unroute_all()
    expect(chip).to_have_attribute("data-mode", "live")
    (tmp_path / "go").touch()
    editor.has_status("after", "succeeded")

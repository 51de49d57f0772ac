"""An agent is rewound beside the Tape: a word or an answer of a turn is another one, and both futures are seen."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, box_of
from tests.browser.test_a11y import findings
from tests.browser.test_agent import EXAMPLES
from tests.support.dev_model import scripted_model

SHIPPING = "Refund the shipping only."
RULES: list[dict[str, object]] = [
    {"when": {"tool": ""}, "text": "I look it up.", "calls": [{"name": "find_order", "arguments": {"number": "1042"}}]},
    {
        "when": {"tool": "find_order", "system": "shipping only"},
        "text": "Its shipping was late.",
        "calls": [{"name": "refund", "arguments": {"number": "1042", "amount": 5}}],
    },
    {
        "when": {"tool": "find_order"},
        "text": "The order is late.",
        "calls": [{"name": "refund", "arguments": {"number": "1042", "amount": 20}}],
    },
    {"when": {"tool": "refund"}, "output": {"answer": "It is on the way back: {{tool}}", "resolved": True}},
]


def script(folder: Path) -> Path:
    rules = [{**rule, "usage": {"input_tokens": 300, "output_tokens": 20}} for rule in RULES]
    (folder / "script.json").write_text(json.dumps({"rules": rules}))
    return folder / "script.json"


def refunded(editor: Editor) -> str:
    """A run of the example of an agent to its end, with the refund approved. Its id."""
    run = editor.api.run(json.loads((EXAMPLES / "agent.json").read_text("utf-8")), {}, wait_s=30)
    (wait,) = editor.api.waits(run)
    editor.api.post(f"/api/runs/{run}/waits/{wait['id']}", {"action": "approve", "fields": {}})
    assert editor.api.until(run, "succeeded") == "succeeded"
    return run


def turn_two(editor: Editor) -> None:
    """Go to its end, from any turn."""
    at = editor.page.get_by_text(re.compile(r"^Turn \d of 3$"))
    if at.inner_text() != "Turn 1 of 3":
        editor.page.get_by_role("button", name="Turn before").click()
    if at.inner_text() == "Turn 1 of 3":
        editor.page.get_by_role("button", name="Next turn").click()


def runs(editor: Editor) -> list[str]:
    return [each["id"] for each in editor.api.get("/api/runs")["runs"]]


def test_a_word_of_an_agent_is_changed_and_both_futures_are_on_one_tape(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    with scripted_model(script(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        page, run = editor.page, refunded(editor)
        editor.open_run(run)
        editor.has_status("agent", "succeeded")
        editor.at("rewind").click()
        tape = box_of(page.locator(".lanes__scroll"))
        page.mouse.move(tape["x"] + tape["width"] - 30, tape["y"] + 12)
        page.mouse.down()
        page.mouse.move(tape["x"] + tape["width"] * 0.55, tape["y"] + 12, steps=6)
        page.mouse.up()
        expect(editor.block("agent")).not_to_have_attribute("data-status", "succeeded")
        line = editor.at("rewind-line")
        expect(line).to_contain_text("Rewound to turn")
        turn_two(editor)
        expect(line).to_contain_text("Rewound to turn 2 of Support")
        expect(line).to_contain_text("Nothing is called until Continue")
        expect(line).to_contain_text("5 steps may run again, 3 of them outside: dev:gpt-5-mini, refund.")
        panel = page.get_by_role("region", name="Two futures")
        expect(panel.get_by_role("row").filter(has_text="Reused")).to_contain_text("2 of 6")
        expect(panel).to_contain_text("2 calls are reused and not paid again: 300 input tokens")
        expect(editor.block("reply")).to_have_attribute("data-future", "before")
        turn = editor.at("rewind-turn")
        expect(turn.get_by_label("Turn 2 wrote")).to_have_value("The order is late.")
        expect(turn.get_by_label("Answer about refund")).to_have_value(re.compile('"approve"'))
        words = turn.get_by_label("Instructions")
        words.fill(words.input_value().replace("Refund late orders.", SHIPPING))
        expect(editor.at("changed-words").locator("mark")).to_have_text("the shipping only.")
        assert findings(page) == []
        assert runs(editor) == [run]
        editor.at("rewind-continue").click()
        expect(editor.at("futures")).to_be_visible()
        other = editor.run_id()
        editor.api.until(other, "waiting")
        sees_both_futures(editor, run, other)


def sees_both_futures(editor: Editor, run: str, other: str) -> None:
    """On one Tape, with the first value that is another one; and on the canvas."""
    page = editor.page
    difference = page.get_by_role("group", name="First difference")
    expect(difference).to_contain_text("refund.amount")
    expect(difference.locator("[data-when=before]")).to_have_text("20")
    expect(difference.locator("[data-when=now]")).to_have_text("5")
    panel = page.get_by_role("region", name="Two futures")
    expect(panel.get_by_role("row").filter(has_text="Tokens")).to_contain_text("960")
    expect(panel.get_by_role("row").filter(has_text="Tokens")).to_contain_text("640")
    expect(panel.get_by_role("row").filter(has_text="Reused")).to_contain_text("2 of 3, unpaid")
    expect(editor.block("reply")).to_have_attribute("data-future", "before")
    expect(editor.at("changed-words").locator("mark")).to_have_text("the shipping only.")
    turns = editor.at("both-turns")
    expect(turns.locator("[data-when=before]")).to_contain_text("refund number 1042, amount 20")
    expect(turns.locator("[data-when=now]")).to_contain_text("refund number 1042, amount 5")
    assert findings(page) == []
    (wait,) = editor.api.waits(other)
    editor.api.post(f"/api/runs/{other}/waits/{wait['id']}", {"action": "approve", "fields": {}})
    assert editor.api.until(other, "succeeded") == "succeeded"
    expect(editor.block("reply")).not_to_have_attribute("data-future", "before")
    expect(editor.at("before-reply")).to_contain_text("Before")
    expect(editor.at("now-reply")).to_contain_text("Now")
    editor.select("agent")
    editor.at("tab-output").click()
    attempts = editor.at("inspector").locator(".attempt")
    expect(attempts.first).to_contain_text("Interrupted")
    expect(attempts.last).to_contain_text("Succeeded")
    paid = [e["data"].get("from_run") for e in editor.api.events(other) if e["type"] == "step.finished"]
    assert paid == [run, run, None, None, None, None]


def test_an_answer_of_a_person_is_another_one(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    with scripted_model(script(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        page, run = editor.page, refunded(editor)
        seq = next(e["seq"] for e in reversed(editor.api.events(run)) if e["type"] == "step.started")
        editor.open_run(run, f"?seq={seq - 1}&rewind=1")
        turn = editor.at("rewind-turn")
        answer = turn.get_by_role("textbox", name="Answer about refund")
        answer.fill("{")
        go = editor.at("rewind-continue")
        expect(go).to_have_attribute("aria-disabled", "true")
        expect(page.get_by_role("alert")).to_contain_text("not valid JSON")
        answer.fill('{"action": "reject", "reason": "Not before Friday"}')
        expect(turn).to_contain_text("made again")
        expect(page.get_by_role("region", name="Two futures")).to_contain_text("4 calls are reused")
        page.reload()  # the address has the moment, and the rewind
        expect(answer).to_have_value(re.compile('"approve"'))
        answer.fill('{"action": "reject", "reason": "Not before Friday"}')
        go.click()
        expect(editor.at("futures")).to_be_visible()
        other = editor.run_id()
        assert editor.api.until(other, "succeeded", "failed") == "succeeded"
        difference = page.get_by_role("group", name="First difference")
        expect(difference).to_contain_text("approve refund.action")
        expect(difference.locator("[data-when=now]")).to_have_text('"reject"')
        calls = editor.api.get(f"/api/runs/{other}")["output"]
        assert "Not before Friday" in json.dumps(calls)


def test_a_rewind_waits_for_the_server_and_fits_a_phone(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    with scripted_model(script(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        watched = contexts(server.url)
        watched.allow("ERR_FAILED")
        editor = Editor(watched.page(), server.url)
        page, run = editor.page, refunded(editor)
        page.route("**/fork?*", lambda route: route.abort())
        editor.open_run(run, "?rewind=1")
        panel = page.get_by_role("region", name="Two futures")
        expect(panel.get_by_role("alert")).to_be_visible()
        page.unroute("**/fork?*")
        page.get_by_role("button", name="Turn before").click()
        expect(panel.get_by_role("row").filter(has_text="Reused")).to_be_visible()
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.locator(".lanes")).to_have_count(0)
        go = editor.at("rewind-continue")
        go.click(trial=True)  # it can be reached
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert findings(page) == []
        page.get_by_role("button", name="Leave").click()
        expect(go).to_have_count(0)
        expect(page).not_to_have_url(re.compile("rewind"))


def test_a_result_is_changed_where_the_tape_was_dragged_to(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    """Right after a tool has answered: its result is there, and what Continue began is read without noise."""
    with scripted_model(script(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        page, run = editor.page, refunded(editor)
        asked = [e["seq"] for e in editor.api.events(run) if e["type"] == "step.started"]
        editor.open_run(run, f"?seq={asked[2]}&rewind=1")
        expect(page.get_by_text("Turn 2 of 3")).to_be_visible()
        result = page.get_by_role("textbox", name="Result of find_order, turn 1")
        expect(result).not_to_have_value(re.compile("content-type"))
        result.fill(result.input_value().replace("1042", "1099"))
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("slider", name="Tape")).to_be_focused()
        difference = page.get_by_role("group", name="First difference")
        expect(difference).to_contain_text("find_order.body.query.order")
        other = editor.run_id()
        page.get_by_role("button", name="Answer").click()
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()
        assert editor.api.until(other, "succeeded") == "succeeded"
        expect(page.get_by_role("region", name="Canvas")).to_be_focused()
        panel = page.get_by_role("region", name="Two futures")
        expect(panel.get_by_role("row").filter(has_text="Result")).not_to_contain_text("waiting")
        expect(difference).not_to_contain_text("idempotency")


def test_a_word_is_the_first_difference_until_a_value_is(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    with scripted_model(script(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        page, run = editor.page, refunded(editor)
        asked = [e["seq"] for e in editor.api.events(run) if e["type"] == "step.started"]
        editor.open_run(run, f"?seq={asked[2]}&rewind=1")
        prompt = page.get_by_role("textbox", name="Prompt")
        prompt.fill(prompt.input_value().replace("1042", "1043"))
        page.get_by_role("button", name="Continue").click()
        difference = page.get_by_role("group", name="First difference")
        expect(difference).to_contain_text("Prompt")
        expect(difference.locator("[data-when=now]")).to_contain_text("1043")
        expect(editor.at("changed-words").locator("mark")).to_have_text("1043?")
        panel = page.get_by_role("region", name="Two futures")
        expect(panel.get_by_role("row").filter(has_text="Result")).to_contain_text("waiting")
        expect(panel.get_by_role("row").filter(has_text="Branch")).to_have_count(0)

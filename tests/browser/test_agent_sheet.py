"""The sheet of an agent: its talk, what each call asked and got, the question at its place, the answer as it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, document
from tests.browser.test_a11y import findings
from tests.browser.test_agent import FIND_PARAMS, PROMISE, REFUND_PARAMS, slow
from tests.support.dev_model import scripted_model

NUMBER = {"number": {"type": "string"}}


def tool(name: str, params: dict[str, Any], arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": arguments, "required": [*arguments]}
    return {"name": name, "block": "http", "params": params, "arguments": schema, **more}


AGENT = document(
    {
        "support": {
            "type": "agent",
            "name": "Support",
            "at": [288, 0],
            "params": {
                "model": "dev:support",
                "prompt": "Where is my order 1042?",
                "tools": [
                    tool("find_order", FIND_PARAMS, NUMBER),
                    tool("refund", REFUND_PARAMS, {**NUMBER, "amount": {"type": "number"}}, approve="always"),
                ],
                "output_schema": {
                    "type": "object",
                    "properties": {"answer": {"type": "string"}, "resolved": {"type": "boolean"}},
                    "required": ["answer", "resolved"],
                },
            },
        }
    },
    [("start", "support")],
)


def open_agent(editor: Editor) -> str:
    """Run it to its question, and open its sheet."""
    editor.open(AGENT)
    run = editor.run()
    editor.has_status("support", "waiting")
    editor.select("support")
    editor.press("Enter")
    expect(editor.at("agent-sheet")).to_be_visible()
    return run


def test_a_talk_is_read_and_its_question_answered_in_place(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    with scripted_model(slow(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        run = open_agent(editor)
        expect(editor.at("talk")).to_contain_text("Where is my order 1042?")
        expect(editor.page.get_by_label("Needs attention")).to_be_hidden()  # it would lie over the block
        call = editor.at("turn-1").get_by_test_id("call-find_order")
        expect(call).to_contain_text("number 1042")
        call.get_by_role("button").click()
        expect(call).to_contain_text("Asked")
        expect(call).to_contain_text("Came back")
        happens = editor.at("approval-happens")
        expect(happens).to_contain_text("Sends POST")
        expect(happens).to_contain_text("/demo/echo?refund=1042")
        expect(editor.at("sheet-tool-refund")).to_contain_text("asks now")
        expect(editor.at("agent-answer")).to_contain_text("not yet")
        assert findings(editor.page) == []
        editor.at("approval").get_by_label("amount").fill("15")
        expect(editor.at("approval")).to_contain_text("amount 15")
        editor.at("allow").click()
        assert editor.api.until(run, "succeeded") == "succeeded"
        expect(editor.at("agent-answer")).to_contain_text(PROMISE)
        refund = editor.at("call-refund")
        expect(refund).to_contain_text("amount 15")
        expect(editor.at("agent-tape").get_by_role("button", name="turn 1")).to_be_visible()
        output = editor.api.get(f"/api/runs/{run}")["output"]
        assert [each["arguments"].get("amount") for each in output["tool_calls"]] == [None, 15]
        sheet = editor.at("agent-sheet")
        sheet.get_by_role("button", name="Keep as test").click()
        expect(sheet.get_by_role("button", name="Keep no longer")).to_be_visible()
        assert [each["run"] for each in editor.api.get("/api/workflows/tested/kept")["kept"]] == [run]


def test_a_refusal_has_a_reason_and_the_tape_moves_the_talk(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    with scripted_model(slow(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        run = open_agent(editor)
        editor.at("refuse").click()
        editor.at("refuse-reason").fill("Not before Friday")
        editor.at("refuse-send").click()
        expect(editor.at("call-refund")).to_contain_text("refused")
        assert editor.api.until(run, "succeeded", "failed")
        editor.at("call-refund").get_by_role("button").click()
        expect(editor.at("call-refund")).to_contain_text("Not before Friday")
        editor.at("agent-tape").get_by_role("button", name="turn 1", exact=True).click()
        expect(editor.at("call-find_order")).to_have_count(0)
        expect(editor.at("turn-1")).to_contain_text("Thinking")
        editor.at("agent-settings").click()
        expect(editor.at("step-sheet").get_by_test_id("field-prompt")).to_be_visible()


def test_a_changed_result_goes_on_as_another_run(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    with scripted_model(slow(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        run = open_agent(editor)
        editor.at("agent-tape").get_by_role("button", name="find_order").click()
        editor.at("rewind-turn").click()
        expect(editor.at("run-page")).to_be_visible()
        turn = editor.page.get_by_role("group", name="The turn at this moment")
        turn.get_by_label("Result of find_order").fill('"not late"')
        editor.at("rewind-continue").click()
        expect(editor.at("futures")).to_be_visible()
        other = editor.run_id()
        assert other != run
        editor.api.until(other, "waiting")
        ended = {e["data"]["n"]: e["data"] for e in editor.api.events(other) if e["type"] == "step.finished"}
        results = [each["output"] for each in ended.values() if "body" in each["output"]]
        assert [each["body"] for each in results] == ["not late"]
        (first,) = [e for e in editor.api.events(other) if e["type"] == "run.forked"]
        assert first["data"]["source"] == run

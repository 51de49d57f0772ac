"""The example of an agent, built by hand: found, filled in, connected, run against a model on this machine, and its
refund approved. What it says arrives while it says it, and its steps are in the inspector and in the trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, document
from tests.support.dev_model import scripted_model

EXAMPLES = Path(__file__).parents[2] / "examples"
PROMISE = "Order 1042 is late. I have asked for a refund."
FIND_PARAMS = {"url": "${WEFT_BASE_URL}/demo/echo?order={{number}}&status=late"}
REFUND_PARAMS = {"url": "${WEFT_BASE_URL}/demo/echo?refund={{number}}", "method": "POST", "body": "{{amount}}"}


def slow(folder: Path) -> Path:
    """The script of the example, for agents with any instructions, and so slow that a page can see it speak."""
    script = json.loads((EXAMPLES / "models" / "agent.json").read_bytes())
    for rule in script["rules"]:
        del rule["when"]["system"]
    script["rules"][1]["pause_ms"] = 50
    (folder / "script.json").write_text(json.dumps(script))
    return folder / "script.json"


def test_an_agent_is_built_by_hand_and_a_refund_is_approved(
    servers: Servers, contexts: Contexts, tmp_path: Path
) -> None:
    with scripted_model(slow(tmp_path)) as url:
        server = servers(WEFT_MODEL_DEV=url)
        editor = Editor(contexts(server.url).page(), server.url)
        agent = build(editor)
        run = editor.run()
        editor.at("tab-output").click()
        expect(editor.at("inspector")).to_contain_text("Output (streaming)")
        expect(editor.at("inspector")).to_contain_text("The order is late")
        editor.has_status(agent, "waiting")
        card = editor.block(agent)
        expect(editor.at("tool-find_order")).to_have_attribute("data-state", "done")
        expect(editor.at("tool-find_order")).to_have_text("find_order1")
        expect(editor.at("tool-refund")).to_have_attribute("data-state", "waiting")
        expect(editor.at("tool-refund")).to_contain_text("asks first")
        expect(card.locator(".agent__thought")).to_contain_text("The order is late")
        expect(card.locator(".agent__foot")).to_contain_text("Turn 2 of 20")
        expect(card.locator(".agent__foot")).to_contain_text("705 in")
        approve(editor, run)
        editor.has_status(agent, "succeeded")
        expect(editor.at("tool-refund")).to_have_text("refund1")
        assert editor.api.until(run, "succeeded") == "succeeded"
        output = editor.api.get(f"/api/runs/{run}")["output"]
        assert output["content"] == {"answer": PROMISE, "resolved": True}
        assert [call["arguments"].get("amount") for call in output["tool_calls"]] == [None, 15]
        see_the_steps(editor, agent)


def build(editor: Editor) -> str:
    """The agent and its two tools. The id of its block."""
    editor.open(document({}, []))
    editor.select("start")
    editor.press("/")
    editor.has_focus("[data-testid=block-picker]")
    editor.page.keyboard.type("agent")
    editor.press("Enter")
    expect(editor.page.locator(".card")).to_have_count(2)
    (agent,) = set(editor.doc()["blocks"]) - {"start"}
    expect(editor.edge("start", agent)).to_be_attached()
    editor.select(agent)
    model = editor.at("field-model")
    model.click()
    expect(editor.page.get_by_role("option", name="Scripted, free")).to_be_visible()
    model.fill("dev:support")
    expect(editor.at("price-model")).to_contain_text("Scripted, free")
    model.press("Escape")
    editor.at("field-prompt").fill("Where is my order 1042?")
    add_tool(editor, 0, "find_order", FIND_PARAMS, {"number": "string"})
    add_tool(editor, 1, "refund", REFUND_PARAMS, {"number": "string", "amount": "number"})
    editor.at("field-tools.1.approve").select_option(label="Before each call")
    schema_field(editor, "output_schema", 0, "answer", "string")
    schema_field(editor, "output_schema", 1, "resolved", "boolean")
    editor.is_saved()
    params = editor.stored()["blocks"][agent]["params"]
    assert [(each["name"], each.get("approve", "never")) for each in params["tools"]] == [
        ("find_order", "never"),
        ("refund", "always"),
    ]
    return str(agent)


def add_tool(editor: Editor, at: int, name: str, params: dict[str, Any], arguments: dict[str, str]) -> None:
    """From the tab of blocks; its arguments are the places in its params, of which one gets another type."""
    place = f"tools.{at}"
    editor.at("add-tools").click()
    editor.at("tool-tab-block").click()
    editor.page.get_by_role("option", name="HTTP request").click()
    editor.at(f"field-{place}.name").fill(name)
    for param, value in params.items():
        field = editor.at(f"field-{place}.params.{param}")
        if param == "method":
            field.select_option(value)
        else:
            field.fill(value)
    editor.page.get_by_text(f"The model fills in: {', '.join(arguments)}").click()
    for n, (argument, type) in enumerate(arguments.items()):
        expect(editor.at(f"field-{place}.arguments.{n}.name")).to_have_value(argument)
        editor.at(f"field-{place}.arguments.{n}.type").select_option(type)


def schema_field(editor: Editor, path: str, at: int, name: str, type: str) -> None:
    editor.at(f"add-{path}").click()
    field = editor.at(f"field-{path}.{at}.name")
    field.fill(name)
    field.press("Enter")
    editor.at(f"field-{path}.{at}.type").select_option(type)


def approve(editor: Editor, run: str) -> None:
    """On the page behind the link: it shows the arguments, one is changed, and the tool is called with it."""
    (wait,) = editor.api.waits(run)
    page = editor.page.context.new_page()
    page.goto(urlsplit(wait["link"]).path)
    amount = page.get_by_label("amount")
    expect(amount).to_have_value("20")
    amount.fill("15")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    page.close()


def see_the_steps(editor: Editor, agent: str) -> None:
    for step in ("find_order", "refund"):
        expect(editor.at("steps").get_by_text(step, exact=True)).to_be_visible()
    editor.page.get_by_role("tab", name="Trace").click()
    for step in ("find_order", "approve refund", "refund"):
        row = editor.page.get_by_role("treeitem").filter(has=editor.page.get_by_text(step, exact=True))
        expect(row).to_have_attribute("data-status", "succeeded")

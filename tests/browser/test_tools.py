"""The form of an agent: its model is chosen with its price, its tools from tabs, and arguments are typed once."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, document

AGENT = {"type": "agent", "name": "Agent", "at": [320, 0], "params": {"prompt": "Hello"}}


def test_a_model_is_chosen_with_its_price_or_typed(servers: Servers, contexts: Contexts) -> None:
    server = servers(WEFT_MODEL_LOCAL="http://127.0.0.1:9/v1", WEFT_PRICE_LOCAL="llama=0.5/2")
    editor = Editor(contexts(server.url).page(), server.url)
    editor.open(document({"a": AGENT}, [("start", "a")]))
    editor.select("a")
    model = editor.at("field-model")
    expect(model).to_have_attribute("placeholder", "Choose a model")
    model.click()
    local = editor.page.get_by_role("option", name="local:llama")
    expect(local).to_contain_text("$0.5 in, $2 out")
    expect(editor.page.get_by_text("openai, needs a key")).to_be_visible()
    editor.page.keyboard.type("gpt-5-mini")
    expect(editor.page.get_by_role("option").first).to_contain_text("openai:gpt-5-mini")
    editor.press("ArrowDown")
    editor.press("Enter")
    expect(model).to_have_value("openai:gpt-5-mini")
    expect(editor.at("price-model")).to_have_text("$0.25 in, $2 out per million tokens. No key is set for openai.")
    model.fill("local:llama")
    expect(editor.at("price-model")).to_have_text("$0.5 in, $2 out per million tokens")
    editor.press("Escape")
    expect(editor.page.locator(".optionlist")).to_have_count(0)
    expect(model).to_be_focused()
    editor.is_saved()
    assert editor.stored()["blocks"]["a"]["params"]["model"] == "local:llama"


def test_tools_of_four_kinds_have_their_arguments_from_what_was_chosen(editor: Editor) -> None:
    fields = [{"name": "order", "type": "integer", "required": True}, {"name": "note", "type": "string"}]
    refunds = document({"s": {"type": "set", "params": {"value": 1}, "at": [300, 0]}}, [("start", "s")])
    refunds = {**refunds, "name": "refunds", "description": "Pays money back."}
    refunds["blocks"]["start"]["params"] = {"fields": fields}
    editor.api.post("/api/workflows", {"document": refunds})
    editor.open(document({"a": AGENT}, [("start", "a")]))
    editor.select("a")

    editor.at("add-tools").click()
    editor.page.get_by_role("option", name="refunds").click()
    editor.at("field-tools.0.approve").select_option(label="Only if a condition is true")
    editor.at("field-tools.0").click()
    expect(editor.at("field-tools.0")).to_contain_text("asks if")

    editor.at("add-tools").click()
    editor.at("tool-tab-connector").click()
    editor.page.get_by_role("combobox", name="Connector").fill("send a message slack")
    editor.press("Enter")
    expect(editor.at("by-model-tools.1.params.channel")).to_be_visible()
    editor.at("by-model-tools.1.params.channel").get_by_role("button").click()
    editor.at("field-tools.1.params.channel").fill("C1")

    editor.at("add-tools").click()
    editor.at("tool-tab-block").click()
    editor.page.get_by_role("option", name="SQL query").click()
    editor.at("add-tools.2.params.parameters").click()
    editor.at("field-tools.2.params.parameters.0.key").fill("id")
    editor.at("field-tools.2.params.parameters.0.value").fill("{{id}}")

    editor.at("add-tools").click()
    editor.at("tool-tab-mcp").click()
    editor.at("tool-mcp").click()
    expect(editor.at("field-tools.3.mcp.url")).to_be_visible()
    size = editor.page.evaluate("[document.documentElement.scrollHeight, innerHeight, scrollY]")
    assert size == [size[1], size[1], 0], "the page does not scroll to what was added"

    editor.is_saved()
    workflow, slack, sql, mcp = editor.stored()["blocks"]["a"]["params"]["tools"]
    assert (workflow["workflow"], workflow["description"]) == ("refunds", "Pays money back.")
    assert list(workflow["arguments"]["properties"]) == ["order", "note"]
    assert workflow["arguments"]["required"] == ["order"]
    assert slack["params"] == {"operation": "send_message", "text": "{{text}}", "channel": "C1"}
    assert list(slack["arguments"]["properties"]) == ["text"] and slack["approve"] == "write"
    assert sql["arguments"]["properties"] == {"id": {"type": "string"}}
    assert mcp["mcp"] == {} and "arguments" not in mcp


def test_a_function_of_the_server_is_a_tool(servers: Servers, contexts: Contexts, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("import weft\n\n\n@weft.step\ndef refund(order: str) -> str:\n    return order\n")
    server = servers(WEFT_FUNCTIONS=str(tmp_path / "flow.py"))
    editor = Editor(contexts(server.url).page(), server.url)
    editor.open(document({"a": AGENT}, [("start", "a")]))
    editor.select("a")
    editor.at("add-tools").click()
    editor.at("tool-tab-python").click()
    editor.page.get_by_role("option", name="flow.refund").click()
    expect(editor.at("field-tools.0.function")).to_have_value("flow.refund")
    expect(editor.page.get_by_text("Function: flow.refund").first).to_be_visible()
    editor.is_saved()
    [tool] = editor.stored()["blocks"]["a"]["params"]["tools"]
    assert tool == {"name": "refund", "function": "flow.refund", "approve": "write"}

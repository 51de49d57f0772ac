"""The MCP server of a tool in the editor: it is checked, what failed is said, and its tools are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, document
from tests.support.endpoints import beside
from tests.support.mcp_server import mcp_shop

KEY = "Bearer s3cret-4711"


@contextmanager
def shop() -> Iterator[str]:
    """A server that admits `KEY` alone; its host and port."""
    with beside(mcp_shop()) as made:
        made.admits = lambda header: header == KEY
        yield made.place


def test_tools_are_chosen_from_what_the_server_says(servers: Servers, contexts: Contexts) -> None:
    params = {"model": "dev:m", "prompt": "Hello", "tools": [{"name": "shop", "mcp": {}}]}
    agent = {"type": "agent", "name": "Agent", "at": [320, 0], "params": params}
    with shop() as place:
        server = servers(WEFT_ALLOW_PRIVATE=place)
        watched = contexts(server.url)
        watched.allow("400|502")  # Chromium writes the status of a refusal to the console
        editor = Editor(watched.page(), server.url)
        editor.open(document({"a": agent}, [("start", "a")]))
        editor.select("a")
        editor.at("field-tools.0").click()
        check = editor.at("check-tools.0.mcp")
        expect(check).to_have_attribute("title", "Enter the URL of the server")
        editor.at("field-tools.0.mcp.url").fill("http://127.0.0.1:9/mcp")
        check.click()
        expect(editor.page.get_by_text("127.0.0.1:9").last).to_be_visible()  # why it is not asked
        editor.at("field-tools.0.mcp.url").fill(f"http://{place}/mcp")
        check.click()
        expect(editor.page.get_by_text("401")).to_be_visible()
        editor.at("add-tools.0.mcp.headers").click()
        editor.at("field-tools.0.mcp.headers.0.key").fill("Authorization")
        editor.at("field-tools.0.mcp.headers.0.value").fill(KEY)
        expect(editor.page.get_by_text("401")).to_have_count(0)  # what was found is of another server
        check.click()
        tools = editor.at("tools-tools.0.mcp")
        expect(tools.get_by_role("listitem")).to_have_count(2)
        expect(tools).to_contain_text("Finds an order.")
        expect(tools).to_contain_text("only reads")
        tools.get_by_label("pay").check()
        expect(editor.at("field-tools.0.mcp.tools.0")).to_have_value("pay")
        editor.is_saved()
        assert editor.stored()["blocks"]["a"]["params"]["tools"][0]["mcp"]["tools"] == ["pay"]
        tools.get_by_label("pay").uncheck()
        expect(editor.page.get_by_text("The model is offered all of these.")).to_be_visible()

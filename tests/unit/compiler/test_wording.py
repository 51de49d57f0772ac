"""What is wrong with a field of a document is said in words, not in those of the library that reads it."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.wording import place
from tests.unit.compiler.support import block, compiled, only


@pytest.mark.parametrize(
    ("settings", "pointer", "words"),
    [
        ({"timeout_s": "long"}, "/timeout_s", "timeout_s must be a number, not text."),
        ({"timeout_s": 0}, "/timeout_s", "timeout_s must be more than 0."),
        ({"max_executions": 10**9}, "/max_executions", "max_executions must be at most 100,000,000."),
        ({"max_executions": 1.5}, "/max_executions", "max_executions must be a whole number, not a number."),
        ({"pool": "a b"}, "/pool", "pool must be 1 to 64 letters, digits, underscores, points and hyphens."),
        ({"alerts": {"email": ["ops"]}}, "/alerts/email", "email must be an email address."),
        (
            {"alerts": {"webhook": "ops"}},
            "/alerts/webhook",
            "webhook must be an address that begins with http:// or https://.",
        ),
        ({"error_workflow": ""}, "/error_workflow", "error_workflow cannot be empty."),
        ({"alerts": {"email": ["a@b"] * 21}}, "/alerts/email", "email must have at most 20 items."),
        ({"limits": [{"at_most": 1}]}, "/limits/0", "limits, item 1 needs the field key."),
        ({"on_failure": "stop"}, "/on_failure", "on_failure cannot be 'stop'."),
    ],
)
def test_settings(settings: dict[str, Any], pointer: str, words: str) -> None:
    finding = only(compiled({"a": block()}, settings=settings), "field_invalid")
    assert (finding.pointer, finding.message) == (f"/settings{pointer}", words)


def test_blocks() -> None:
    assert only(compiled({"a": {"name": "no type"}}), "field_invalid").message == "a needs the field type."
    assert only(compiled({"a": 7}), "field_invalid").message == "a must be an object, not a whole number."


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (["tools", 0, "name"], "Name of tool 1"),
        (["tools", 1, "mcp", "url"], 'URL of "MCP server" of tool 2'),
        (["to", 1], "Recipient, item 2"),
        (["branches", 2], "Branch 3"),
        (["queries", 0], "Query 1"),
        ([], ""),
    ],
)
def test_a_place_is_named_as_the_form_shows_it(path: list[str | int], name: str) -> None:
    mcp = {"type": "object", "title": "MCP server", "properties": {"url": {"title": "URL"}}}
    tool = {"type": "object", "properties": {"name": {"title": "Name"}, "mcp": mcp}}
    lists = {"tools": "Tools", "to": "Recipient", "branches": "Branches", "queries": "Queries"}
    schema = {"properties": {key: {"type": "array", "title": title, "items": tool} for key, title in lists.items()}}
    assert place(schema, path)[0] == name

"""What is wrong with a field of a document is said in words, not in those of the library that reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler import form_names
from compiler.form_names import Titles
from compiler.wording import place
from tests.unit.compiler.support import block, compiled, only


@pytest.mark.parametrize(
    ("settings", "pointer", "words"),
    [
        ({"timeout_s": "long"}, "/timeout_s", "Run timeout (seconds) must be a number, not text."),
        ({"timeout_s": 0}, "/timeout_s", "Run timeout (seconds) must be more than 0."),
        ({"max_executions": 10**9}, "/max_executions", "Max block executions must be at most 100,000,000."),
        ({"max_executions": 1.5}, "/max_executions", "Max block executions must be a whole number, not a number."),
        ({"pool": "a b"}, "/pool", "Pool must be 1 to 64 letters, digits, underscores, points and hyphens."),
        ({"alerts": {"email": ["ops"]}}, "/alerts/email", 'Email of "Alerts" must be an email address.'),
        (
            {"alerts": {"webhook": "ops"}},
            "/alerts/webhook",
            'Webhook of "Alerts" must be an address that begins with http:// or https://.',
        ),
        ({"error_workflow": ""}, "/error_workflow", "Error workflow cannot be empty."),
        ({"alerts": {"email": ["a@b"] * 21}}, "/alerts/email", 'Email of "Alerts" must have at most 20 items.'),
        ({"limits": [{"at_most": 1}]}, "/limits/0/key", "Key of limit 1 is required."),
        ({"rates": [{"key": "a"}]}, "/rates/0/per_s", "Per second of rate 1 is required."),
        ({"on_failure": "stop"}, "/on_failure", "When a block fails cannot be 'stop'."),
    ],
)
def test_settings(settings: dict[str, Any], pointer: str, words: str) -> None:
    finding = only(compiled({"a": block()}, settings=settings), "field_invalid")
    assert (finding.pointer, finding.message) == (f"/settings{pointer}", words)


@pytest.mark.parametrize(
    ("policy", "pointer", "words"),
    [
        ({"retry": {"max_attempts": 0}}, "/retry/max_attempts", "Max attempts must be at least 1."),
        ({"limit": {"at_most": 1}}, "/limit/key", "Limit key is required."),
        ({"timeout_s": "long"}, "/timeout_s", "Timeout (seconds) must be a number, not text."),
        ({"on_lost": "hope"}, "/on_lost", "on_lost cannot be 'hope'."),
    ],
)
def test_what_every_block_has(policy: dict[str, Any], pointer: str, words: str) -> None:
    finding = only(compiled({"a": block(policy_=policy)}), "field_invalid")
    assert (finding.pointer, finding.message) == (f"/blocks/a/policy{pointer}", words)


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


def test_the_editor_has_the_same_names() -> None:
    def flat(titles: Titles) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, given in titles.items():
            title, inner = given if isinstance(given, tuple) else (given, {})
            found |= {name: title, **{f"{name}/{field}": each for field, each in inner.items()}}
        return found

    file = Path(__file__).parents[2] / "vectors" / "form_names.json"
    forms = ("settings", "policy", "retry", "limit")
    assert {form: flat(getattr(form_names, form.upper())) for form in forms} == json.loads(file.read_bytes())

"""What a model writes stays in the place that the author gave it, and passes no condition by its type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from executor.blocks.connectors import template
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.agent.calls import filled, is_asked, params_of
from executor.blocks.types.agent.tools import read_tools
from executor.kernel.handler.base import StepContext
from executor.kernel.values.payload import Bound

OUT = 'x","amount":9999,"z":"'


def body(text: Any, arguments: dict[str, Any], **headers: str) -> Any:
    params = {"url": "http://h/", "method": "POST", "body": text, "headers": headers}
    [tool] = read_tools([{"name": "pay", "block": "http", "params": params}]).values()
    return params_of(tool, arguments)["body"]


def pairs(text: str) -> list[tuple[str, Any]]:
    """With those that are there twice."""
    return cast("list[tuple[str, Any]]", json.loads(text, object_pairs_hook=list))


@pytest.mark.parametrize("value", [OUT, "\\", '\\"', '"', "a\nb\u2028", "{{amount}}", '"}, {"'])
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json; charset=utf-8"}])
def test_an_argument_stays_in_its_string_of_a_json_text(value: str, headers: dict[str, str]) -> None:
    made = body('{"to":"{{to}}","amount":5}', {"to": value}, **headers)
    assert pairs(made) == [("to", value), ("amount", 5)]
    made = body('{"note": "for \\"{{to}}\\"", "n": {{n}}, "m": {{m}}}', {"to": value, "n": value}, **headers)
    assert pairs(made) == [("note", f'for "{value}"'), ("n", value), ("m", None)]


def test_a_text_of_lines_of_json_and_one_inside_an_object_are_encoded() -> None:
    assert [json.loads(line) for line in body('{"a":"{{a}}"}\n{"b":1}', {"a": OUT}).split("\n")] == [
        {"a": OUT},
        {"b": 1},
    ]
    assert json.loads(body({"inner": '{"a":"{{a}}"}'}, {"a": OUT})["inner"]) == {"a": OUT}
    assert json.loads(filled({"headers": {"X-Arg": '{"a":"{{a}}"}'}}, {"a": OUT})["headers"]["X-Arg"]) == {"a": OUT}


def test_a_form_and_markup_are_encoded() -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert body("to={{to}}&amount=5", {"to": "x&amount=9"}, **form) == "to=x%26amount%3D9&amount=5"
    markup = body("<to>{{to}}</to>", {"to": "</to><amount>9"}, **{"Content-Type": "text/xml"})
    assert markup == "<to>&lt;/to&gt;&lt;amount&gt;9</to>"
    assert body("Hello {{to}}", {"to": '"x"'}) == 'Hello "x"', "a plain text stays as it is"


def test_a_json_text_of_a_connector_is_encoded() -> None:
    found = template.filled({"payload": '{"to":"{{to}}","amount":5}'}, {"to": OUT})
    assert pairs(found["payload"]) == [("to", OUT), ("amount", 5)]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox(threads=1)
    yield sandbox
    sandbox.close()


AMOUNT = {"properties": {"amount": {"type": "number"}, "currency": {"type": "string"}}}
CASES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("args.amount > 50", {}, {"amount": 60}, True),
    ("args.amount > 50", {}, {"amount": 5}, False),
    ("args.amount > 50", {}, {"amount": "60 EUR"}, True),
    ("args.amount > 50", {}, {"amount": "5"}, True),
    ("args.amount > 50", {}, {"amount": None}, True),
    ("args.amount > 50", {}, {}, True),
    ("args.amount > 50", {}, {"amount": {"value": 60}}, True),
    ("args.amount > 50", {}, {"amount": [60, 70]}, True),
    ("args.urgent === true", {}, {"urgent": "true"}, True),
    ("args.urgent === true", {}, {"urgent": False}, False),
    ('args.currency !== "EUR" || args.amount > 50', {}, {"currency": "EUR", "amount": 5}, False),
    ('args.currency === "USD" && args.amount > 50', {}, {"currency": "EUR", "amount": 60}, False),
    ("args.day < '2026-02-01'", {}, {"day": "2026-03-01"}, False),
    ("Math.abs(args.amount) > 50", AMOUNT, {"amount": 5}, False),
    ("Math.abs(args.amount) > 50", {}, {"amount": 5}, True),
    ("Math.abs(args.amount) > 50", {}, {"amount": "60 EUR"}, True),
    ("parseInt(args.currency) > 50", AMOUNT, {"currency": "x60"}, True),
    ("args.items.some((item) => item.price > 50)", {"properties": {"items": {"type": "array"}}},
     {"items": [{"price": "60 EUR"}]}, True),
    ("args.items.some((item) => item.price > 50)", {"properties": {"items": {"type": "array"}}},
     {"items": [{"price": 6}]}, False),
    ("args.items.some((item) => item.price > 50)", {"properties": {"items": {"type": "array"}}},
     {"items": [{"cost": 60}]}, True),
    ('__v["limit"] < args.amount', {}, {"amount": 60}, True),
]  # fmt: skip


@pytest.mark.parametrize(("source", "schema", "arguments", "asks"), CASES)
async def test_a_condition_that_compares_what_cannot_be_compared_asks(
    sandbox: Sandbox, source: str, schema: dict[str, Any], arguments: dict[str, Any], asks: bool
) -> None:
    context = SimpleNamespace(evaluate=partial(sandbox.evaluate, now_ms=0, seed="x"))
    asked = await is_asked(cast(StepContext, context), Bound(source, {"limit": None}), schema, arguments)
    assert asked == asks

from typing import Any

import pytest

from compiler.catalog import Case
from executor.blocks.types.router import block, same
from tests.unit.executor.blocks.types.flow import Sandbox, Throws, context, js

BY_VALUE = [{"id": "de", "title": "German", "equals": "de"}, {"id": "three", "equals": 3}, {"id": "plain"}]


@pytest.mark.parametrize(
    ("value", "route"),
    [("de", "de"), (3, "three"), ("3", "three"), (3.0, "three"), ("plain", "plain"), ("fr", None), (None, None)],
)
async def test_by_value(value: Any, route: str | None) -> None:
    sandbox = Sandbox({})
    done = await block.run(context({"routes": BY_VALUE, "value": value}, js=sandbox))
    assert done.route == route
    assert done.output["route"] == route and done.output["result"] is (route is not None)
    assert sandbox.calls == []


async def test_by_expression_in_order() -> None:
    routes = [{"id": "a", "when": js("a")}, {"id": "b", "title": "B", "when": js("b")}, {"id": "c", "when": js("c")}]
    done = await block.run(context({"routes": routes}, js={"a": 0, "b": "x", "c": Throws("late")}))
    assert (done.route, done.output) == ("b", {"route": "b", "title": "B", "result": True})


async def test_default() -> None:
    done = await block.run(context({"routes": BY_VALUE, "value": "fr", "default": "other"}))
    assert (done.route, done.output) == ("other", {"route": "other", "title": "", "result": False})


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True), (True, 1, False), (False, 0, False), (True, True, True), ("true", True, True),
        ("", None, False),
        ([1, [True]], [1, [True]], True), ([True], [1], False), ({"a": 1}, {"a": 1}, True), ({"a": 1}, {"b": 1}, False),
        (None, None, True), (None, 0, False), ([1], [1, 2], False),
    ],
)  # fmt: skip
def test_same(left: Any, right: Any, equal: bool) -> None:
    assert same(left, right) is equal and same(right, left) is equal


def test_cases() -> None:
    assert block.spec.cases is not None
    assert block.spec.cases({"routes": BY_VALUE[:1], "default": "other"}) == (
        Case("de", "German"),
        Case("other", "Default"),
    )
    assert block.spec.cases({"routes": BY_VALUE[:1], "default": "de"}) == (Case("de", "German"),)
    assert block.spec.cases({"routes": {}, "default": 3}) == ()


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"routes": BY_VALUE, "value": "de", "default": "other"}, []),
        ({"routes": BY_VALUE, "value": "de"}, ["else_missing"]),
        ({"routes": BY_VALUE, "default": ""}, ["required", "else_missing"]),
        ({"routes": [{"id": "a", "when": "1"}], "default": "other"}, []),
    ],
)
def test_a_value_and_a_default_are_asked_for(params: dict[str, Any], found: list[str]) -> None:
    assert block.spec.check is not None
    assert [one.code for one in block.spec.check(params)] == found

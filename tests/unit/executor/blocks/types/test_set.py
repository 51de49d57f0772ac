from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.types.registry import Registry
from executor.blocks.types.set import block
from executor.kernel.handler.base import Done
from tests.support.documents import chain
from tests.unit.executor.blocks.types.flow import context


@pytest.mark.parametrize("value", [None, 0, "", [1], {"a": {"b": None}}])
async def test_the_output_is_the_value(value: Any) -> None:
    assert await block.run(context({"value": value})) == Done(value)


@pytest.mark.parametrize(
    ("values", "first"), [([None, 0, 1], 0), ([None, ""], ""), ([None, None], None), ([], None), (None, None)]
)
async def test_the_output_is_the_first_value_that_is_not_null(values: Any, first: Any) -> None:
    assert await block.run(context({"first": values})) == Done(first)


def test_a_value_and_a_choice_exclude_each_other() -> None:
    assert block.spec.check is not None
    found = compile_document(chain("a", a={"type": "set", "params": {"value": 1, "first": [2]}}), Registry.load())
    assert [(one.code, one.pointer) for one in found.diagnostics] == [("param_invalid", "/blocks/a/params/first")]
    assert block.spec.check({"value": None}) == block.spec.check({"first": [2]}) == ()


async def test_no_value_is_null() -> None:
    assert await block.run(context({})) == Done(None)

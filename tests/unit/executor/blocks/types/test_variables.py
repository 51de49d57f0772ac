from typing import Any

import pytest

from executor.blocks.types.variables import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done, Patch
from executor.kernel.values.variables import apply
from tests.unit.executor.blocks.types.flow import context


async def run(assignments: Any, variables: dict[str, Any] | None = None) -> Done:
    return await block.run(context({"assign": assignments}, variables=variables or {}))


async def test_assignments_become_patches_and_output() -> None:
    done = await run([{"name": "status", "value": "ok"}, {"name": "n", "type": "number", "value": "3"}])
    assert done == Done(
        {"status": "ok", "n": 3}, patches=[Patch("set", '$["status"]', "ok"), Patch("set", '$["n"]', 3)]
    )


async def test_an_object_is_short_for_set() -> None:
    assert (await run({"a b": [1]})).patches == [Patch("set", '$["a b"]', [1])]


async def test_every_operation_works_out() -> None:
    variables: dict[str, Any] = {"list": [1], "obj": {"a": 1}, "n": 1, "old": 1}
    done = await run(
        [
            {"name": "list", "op": "append", "value": 2},
            {"name": "$.obj", "op": "merge", "value": {"b": 2}},
            {"name": "n", "op": "increment", "value": 4},
            {"name": "n", "op": "increment"},
            {"name": "old", "op": "del"},
            {"name": "$.deep[0].x", "value": True},
        ],
        variables,
    )
    assert done.output == {"list": 2, "$.obj": {"b": 2}, "n": 6, "old": None, "$.deep[0].x": True}
    apply(variables, [[p.op, p.path, p.value] for p in done.patches])
    assert variables == {"list": [1, 2], "obj": {"a": 1, "b": 2}, "n": 6, "deep": [{"x": True}]}


async def test_increment_after_set_and_del_in_one_block() -> None:
    done = await run(
        [
            {"name": "n", "value": 10}, {"name": "n", "op": "increment"},
            {"name": "m", "op": "del"}, {"name": "m", "op": "increment"},
        ],
        {"n": 1, "m": 5},
    )  # fmt: skip
    assert done.output == {"n": 11, "m": 1}


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        (None, "params_invalid"),
        ("x", "params_invalid"),
        ([{"value": 1}], "params_invalid"),
        ([{"name": ""}], "params_invalid"),
        ([{"name": "$", "value": 1}], "params_invalid"),
        ([{"name": "$[0]", "value": 1}], "params_invalid"),
        ([{"name": "x", "op": "swap"}], "params_invalid"),
        ([{"name": "$.x[*]", "value": 1}], "path_invalid"),
        ([{"name": "x", "op": "increment", "value": "1"}], "patch_failed"),
    ],
)
async def test_what_is_refused(assignments: Any, code: str) -> None:
    with pytest.raises(BlockError) as caught:
        await run(assignments)
    assert (caught.value.code, caught.value.retryable) == (code, False)


@pytest.mark.parametrize(
    ("assign", "writes"),
    [
        ({"a/b": 1}, [("a/b", "set", "/assign/a~1b")]),
        ([{"name": "$.x.n", "op": "increment"}, {"op": "set"}, 3], [("$.x.n", "increment", "/assign/0")]),
        ([{"name": "y"}], [("y", "set", "/assign/0")]),
        (None, []),
    ],
)
def test_the_variables_that_params_write(assign: Any, writes: list[tuple[str, str, str]]) -> None:
    assert block.spec.writes is not None
    assert [(one.variable, one.op, one.pointer) for one in block.spec.writes({"assign": assign})] == writes

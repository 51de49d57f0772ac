from typing import Any

import pytest

from executor.blocks.types.response import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done
from tests.unit.executor.blocks.types.flow import context


@pytest.mark.parametrize(
    ("params", "response"),
    [
        ({}, {"status": 200, "headers": {}, "body": None}),
        ({"body": {"a": 1}}, {"status": 200, "headers": {}, "body": {"a": 1}}),
        (
            {"status": "404", "headers": {"X-N": 5, "X-None": None, "Content-Type": "text/plain"}, "body": "no"},
            {"status": 404, "headers": {"X-N": "5", "Content-Type": "text/plain"}, "body": "no"},
        ),
    ],
)
async def test_the_answer_of_the_run(params: dict[str, Any], response: dict[str, Any]) -> None:
    output = {"data": response["body"], "status": response["status"], "headers": response["headers"]}
    assert await block.run(context(params)) == Done(output, route=None, response=response)


@pytest.mark.parametrize(
    "params",
    [
        {"status": 99},
        {"status": 600},
        {"status": "fine"},
        {"status": True},
        {"status": None},
        {"headers": [1]},
        {"headers": {"A": "b\r\nSet-Cookie: c"}},
        {"headers": {"A:": "b"}},
        {"headers": {"Content-Length": "1"}},
        {"headers": {"transfer-encoding": "chunked"}},
    ],
)
async def test_what_http_does_not_have_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(BlockError) as caught:
        await block.run(context(params))
    assert (caught.value.code, caught.value.retryable) == ("params_invalid", False)


def test_it_ends_the_run_so_nothing_follows() -> None:
    assert (block.spec.handles, block.spec.inline, block.spec.effect) == ((), True, "none")

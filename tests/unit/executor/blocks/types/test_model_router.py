"""The router by model, over the wire."""

from typing import Any

import pytest

from executor.blocks.types.model_router import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done
from tests.unit.executor.blocks.types.models import asking, model_services

ROUTES = [
    {"id": "billing", "title": "Billing", "description": "Invoices and refunds"},
    {"id": "support", "description": "It does not work"},
]
PARAMS: dict[str, Any] = {
    "model": "dev:m",
    "context": "Where is my refund?",
    "routes": ROUTES,
    "instructions": "Be kind.",
}
TOKENS = {"input_tokens": 20, "output_tokens": 5}
GOOD = {
    "output": {"reason": "It is about money.", "route": "billing"},
    "usage": {"input_tokens": 20, "output_tokens": 5},
}


async def test_the_model_chooses_a_route() -> None:
    async with model_services(GOOD) as (services, server):
        done = await block.run(asking(PARAMS, services))
        [call] = await server.calls()
    assert isinstance(done, Done) and done.route == "billing"
    assert done.output == {
        "route": "billing",
        "title": "Billing",
        "reason": "It is about money.",
        "model": "m",
        "usage": {"input_tokens": 20, "output_tokens": 5, "cached_tokens": 0},
        "cost": None,
    }
    system, user = call["body"]["messages"]
    assert "- billing: Billing: Invoices and refunds\n- support: It does not work\nBe kind" in system["content"]
    assert user["content"] == "Where is my refund?"


@pytest.mark.parametrize("bad", [{"output": {"reason": "x", "route": "sales"}}, {"text": "Billing!"}, {"output": {}}])
async def test_an_invalid_choice_has_one_repair(bad: dict[str, Any]) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    async with model_services({**bad, "times": 1, "usage": usage}, GOOD) as (services, server):
        done = await block.run(asking(PARAMS, services))
        calls = await server.calls()
    assert done.route == "billing" and len(calls) == 2
    assert done.output["usage"] == {"input_tokens": 21, "output_tokens": 7, "cached_tokens": 0}
    said = calls[1]["body"]["messages"]
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user"]
    assert "cannot be used" in said[-1]["content"]


async def test_two_invalid_choices_fail_the_block() -> None:
    async with model_services({"output": {"reason": "x", "route": "sales"}}) as (services, server):
        with pytest.raises(BlockError) as caught:
            await block.run(asking(PARAMS, services))
        assert len(await server.calls()) == 2
    assert (caught.value.code, caught.value.retryable) == ("output_invalid", False)
    assert "sales" in caught.value.message and caught.value.extra["usage"]["input_tokens"] > 0


async def test_params_of_the_model_are_sent() -> None:
    params = {**PARAMS, "temperature": 0.5, "max_tokens": 77, "api_key": "sk-abcdef"}
    async with model_services(GOOD) as (services, server):
        await block.run(asking(params, services))
        [call] = await server.calls()
        for name, value in (("temperature", 3), ("max_tokens", "many"), ("model", ""), ("routes", [])):
            with pytest.raises(BlockError, match=f"(?i){name}"):
                await block.run(asking({**PARAMS, name: value}, services))
    body = call["body"]
    assert body["temperature"] == 0.5 and 77 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert call["headers"]["authorization"] == "…cdef"


def test_findings_and_handles() -> None:
    assert block.spec.check is not None and block.spec.cases is not None
    [finding] = block.spec.check({"routes": [{"id": "a"}, {"id": "b"}, {"id": "a"}]})
    assert finding.pointer == "/routes/2/id"
    assert [case.id for case in block.spec.cases(PARAMS)] == ["billing", "support"]
    for odd in ({}, {"routes": "<x.y>"}, {"routes": [None, {"id": 3}]}):
        assert block.spec.check(odd) == () and block.spec.cases(odd) == ()

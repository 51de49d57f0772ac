"""The evaluator, over the wire."""

from typing import Any

import pytest

from executor.blocks.types.evaluator import block
from executor.errors import BlockError
from tests.unit.executor.blocks.types.models import asking, model_services

METRICS = [
    {"name": "tone", "description": "Is it friendly?", "min": 1, "max": 5},
    {"name": "length"},
]
PARAMS: dict[str, Any] = {"model": "dev:m", "content": "Thank you!", "metrics": METRICS}


def scores(tone: Any, length: Any) -> dict[str, Any]:
    return {"output": {name: {"reason": "so", "score": n} for name, n in (("tone", tone), ("length", length))}}


async def test_scores() -> None:
    async with model_services(scores(4, 2.5)) as (services, server):
        done = await block.run(asking(PARAMS, services))
        [call] = await server.calls()
    assert done.output["scores"] == {"tone": 4, "length": 2.5} and done.route == "out"
    assert done.output["reasons"] == {"tone": "so", "length": "so"} and done.output["cost"] is None
    assert "- tone, from 1 to 5: Is it friendly?\n- length, from 0 to 10:" in call["body"]["messages"][0]["content"]


@pytest.mark.parametrize(
    "bad", [scores(6, 0), scores(0.9, 0), scores(3, "high"), {"output": {"tone": 3}}, {"text": "5"}]
)
async def test_scores_out_of_bounds_are_refused_after_one_repair(bad: dict[str, Any]) -> None:
    async with model_services({**bad, "times": 1}, scores(5, 0)) as (services, server):
        done = await block.run(asking(PARAMS, services))
        assert done.output["scores"] == {"tone": 5, "length": 0} and len(await server.calls()) == 2
    async with model_services(bad) as (services, server):
        with pytest.raises(BlockError) as caught:
            await block.run(asking(PARAMS, services))
        assert len(await server.calls()) == 2
    assert (caught.value.code, caught.value.retryable) == ("output_invalid", False)


@pytest.mark.parametrize(
    "metrics", [[], [{"description": "x"}], [{"name": "a", "min": 3, "max": 3}], [{"name": "a", "min": "low"}], "x"]
)
async def test_metrics_that_cannot_be_used(metrics: Any) -> None:
    async with model_services() as (services, server):
        with pytest.raises(BlockError) as caught:
            await block.run(asking({**PARAMS, "metrics": metrics}, services))
        assert await server.calls() == []
    assert caught.value.code == "params_invalid"


def test_findings_and_output() -> None:
    check, output_from = block.spec.check, block.spec.output_from
    assert check is not None and output_from is not None
    found = check({"metrics": [{"name": "a", "min": 5, "max": 5}, {"name": "a"}, {"name": "b", "min": "<x.y>"}]})
    assert [finding.pointer for finding in found] == ["/metrics/0/min", "/metrics/1/name"]
    schema = output_from(PARAMS)
    assert schema is not None and set(schema["properties"]["scores"]["properties"]) == {"tone", "length"}
    for odd in ({}, {"metrics": "<x.y>"}, {"metrics": [None, {"name": 3}]}):
        assert check(odd) == () and output_from(odd) is not None

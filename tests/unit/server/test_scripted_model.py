"""`weft.open(models=…)`: servers of models and scripted models of an embedded engine."""

from __future__ import annotations

from typing import Any

import pytest

from executor.errors import BadRequest
from executor.open.embed import open_engine
from executor.open.testing.engines import engine
from server.scripted_model import ScriptedModel
from tests.support.dev_model import dev_model
from tests.support.documents import chain

ANSWER: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def asking(**params: Any) -> dict[str, Any]:
    return chain("a", a={"type": "agent", "params": {"model": "local:m", "prompt": "Ada", **params}})


@pytest.mark.parametrize("hosts", [None, {"LOCAL_API_KEY": ["127.0.0.1"]}])
async def test_a_server_of_models_gets_its_key(hosts: Any) -> None:
    async with (
        dev_model({"text": "Hello {{last}}"}) as model,
        open_engine(
            models={"local": model.url}, env={"LOCAL_API_KEY": "k-1234567890"}, secrets=hosts or ["LOCAL_API_KEY"]
        ) as opened,
    ):
        run = await opened.run(asking(), timeout_s=60)
        assert run.output["content"] == "Hello Ada"
        [call] = await model.calls()
        assert call["headers"]["authorization"] == "…7890"


async def test_a_scripted_model_needs_no_server() -> None:
    model = ScriptedModel({"when": {"last": "Ada", "round": 0}, "text": "no"}, {"output": {"n": 3}})
    async with engine(models={"local": model}) as opened:
        run = await opened.run(asking(output_schema=ANSWER), timeout_s=60)
    assert (run.output["content"], run.output["rounds"]) == ({"n": 3}, 2), "it was asked again"
    assert [len(one.messages) for one in model.calls] == [1, 3]


async def test_a_scripted_failure_is_that_of_a_server() -> None:
    model = ScriptedModel({"error": {"status": 400, "message": "too long"}})
    async with engine(models={"local": model}) as opened:
        run = await opened.run(asking(), timeout_s=60)
    assert run.error is not None and run.error["message"] == "local:m: too long"


async def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(BadRequest, match="models: it must start with http"):
        async with open_engine(models={"local": "127.0.0.1:11434"}):
            pass
    with pytest.raises(ValueError, match=r"the script of a model: .*unknown field `txt`"):
        ScriptedModel({"txt": "Hello"})

"""What an agent remembers between runs: real runs, the model over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.agent.memory import Remembered, read_memory, turn_of
from executor.errors import BlockError, StoreError
from executor.kernel.store.topics.memory import Conversation, MemoryTurn
from executor.open.engine import Engine
from tests.support.dev_model import DevModel, dev_model
from tests.support.documents import chain
from tests.support.runs import engine_on, outputs, settled

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]


@asynccontextmanager
async def world(path: Path, *rules: Json) -> AsyncIterator[tuple[Engine, DevModel]]:
    async with dev_model(*rules) as model, engine_on(path / "weft.db", models={"DEV": model.url}) as engine:
        yield engine, model


async def say(engine: Engine, prompt: str, name: str = "chat", **params: Any) -> Json:
    given = {"model": "dev:m", "system": "Be brief.", "prompt": prompt, "memory": "ada"} | params
    begun = await engine.submit({**chain("a", a={"type": "agent", "params": given}), "name": name})
    output: Json = outputs(await settled(engine, begun.run))["a"]
    return output


async def asked(model: DevModel) -> list[list[tuple[str, str]]]:
    return [[(m["role"], m["content"]) for m in call["body"]["messages"]] for call in await model.calls()]


async def test_the_model_gets_what_was_said_before(tmp_path: Path) -> None:
    async with world(tmp_path, {"text": "You said {{last}}"}) as (engine, model):
        first = await say(engine, "one")
        second = await say(engine, "two")
        await say(engine, "three", memory="bob")
        await say(engine, "four", memory_messages=2)
        calls = await asked(model)
    assert first["memory"] == {"key": "ada", "scope": "", "messages": 0}
    assert second["memory"]["messages"] == 2
    one = [("user", "one"), ("assistant", "You said one")]
    assert calls[1] == [("system", "Be brief."), *one, ("user", "two")]
    assert calls[2] == [("system", "Be brief."), ("user", "three")]
    assert calls[3] == [("system", "Be brief."), ("user", "two"), ("assistant", "You said two"), ("user", "four")]


async def test_a_scope_is_shared_and_a_workflow_is_not(tmp_path: Path) -> None:
    async with world(tmp_path, {"text": "ok"}) as (engine, _):
        await say(engine, "one", memory_scope="team")
        assert (await say(engine, "two", name="other", memory_scope="team"))["memory"]["messages"] == 2
        assert (await say(engine, "three", name="other"))["memory"]["messages"] == 0
        heads = await engine.store.list_memories()
    assert {(head.workflow, head.scope, head.turns) for head in heads} == {("", "team", 2), ("other", "", 1)}


async def test_what_fails_is_not_remembered(tmp_path: Path) -> None:
    async with world(tmp_path, {"error": {"status": 400, "message": "no"}}) as (engine, _):
        begun = await engine.submit(
            chain("a", a={"type": "agent", "params": {"model": "dev:m", "prompt": "x", "memory": "ada"}})
        )
        assert (await settled(engine, begun.run)).status == "failed"
        assert await engine.store.list_memories() == []


async def test_a_turn_whose_commit_was_not_heard_of_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, {"text": "ok"}) as (engine, model):
        write, tried = engine.store.remember, list[bool]()

        async def lose(conversation: Conversation, turn: MemoryTurn) -> bool:
            tried.append(await write(conversation, turn))
            if len(tried) == 1:
                raise StoreError("the answer was lost")
            return tried[-1]

        monkeypatch.setattr(engine.store, "remember", lose)
        await say(engine, "one")
        assert tried == [True, False]
        assert len(await engine.store.recall(Conversation("chat", "", "ada"), 10)) == 1
        assert len(await model.calls()) == 1


async def test_two_at_once_are_whole_turns_in_one_order(tmp_path: Path) -> None:
    async with world(tmp_path, {"text": "re {{last}}"}) as (engine, model):
        await asyncio.gather(say(engine, "one"), say(engine, "two"))
        await say(engine, "three")
        last = (await asked(model))[-1]
    said = [text for _, text in last[1:-1]]
    assert said in (["one", "re one", "two", "re two"], ["two", "re two", "one", "re one"])


async def test_no_secret_is_remembered(tmp_path: Path) -> None:
    async with (
        dev_model({"text": "{{last}}"}) as model,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}, env={"API": "hunter2hunter2"}) as engine,
    ):
        await say(engine, "my key is hunter2hunter2", memory="hunter2hunter2")
        [head] = await engine.store.list_memories()
        turns = await engine.store.recall(Conversation(head.workflow, "", head.key), 10)
    assert "hunter2" not in head.key and b"hunter2" not in turns[0].messages


def test_only_whole_turns_that_fit() -> None:
    turns = [turn_of("a" * 40, "b" * 40), turn_of("c" * 40, "d" * 40)]
    assert [m.text[0] for m in Remembered("k", "", 4, None).fitting(turns)] == ["a", "b", "c", "d"]
    assert [m.text[0] for m in Remembered("k", "", 3, None).fitting(turns)] == ["c", "d"]
    assert [m.text[0] for m in Remembered("k", "", 4, 20).fitting(turns)] == ["c", "d"]
    assert Remembered("k", "", 4, 19).fitting(turns) == []
    assert len(turn_of("x" * 50_000, "")[0]["text"]) < 33_000


@pytest.mark.parametrize("key", [None, "  ", True, ["a"], {"a": 1}, "x" * 201, "a\0"])
def test_a_key_that_is_not_there_is_no_key(key: object) -> None:
    with pytest.raises(BlockError, match="memory"):
        read_memory({"memory": key})


def test_without_a_key_nothing_is_remembered() -> None:
    assert read_memory({}) is None and read_memory({"memory": ""}) is None
    assert read_memory({"memory": 7}) == Remembered("7", "", 20, None)

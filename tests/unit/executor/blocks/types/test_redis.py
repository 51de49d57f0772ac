"""The redis block: findings, its effect in a plan, and runs against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from compiler.compile import compile_document
from executor.blocks.types.agent.calls import effect_of, params_of
from executor.blocks.types.agent.tools import read_tools
from executor.blocks.types.registry import Registry
from executor.blocks.vault.connection import Connection
from executor.errors import BlockError
from executor.open.testing.crashes import crash_everywhere
from tests.support.documents import chain
from tests.support.lossy import in_front_of
from tests.support.runs import engine_on, outputs, ran, until_event
from tests.support.valkey import PASSWORD, valkey

REGISTRY = Registry.load()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with valkey() as started:
        yield started


def given(command: str, /, *arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "redis", "params": {"server": "${CACHE}", "command": command, "arguments": list(arguments)} | more}


def compiled(**params: Any) -> Any:
    block = given("GET", "a", **params)
    return compile_document(chain("a", a=block), REGISTRY, env_names=frozenset({"CACHE"}))


def findings(**params: Any) -> list[str]:
    return [found.message.partition(": ")[2] for found in compiled(**params).diagnostics]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("subscribe", "SUBSCRIBE receives for as long as a connection is open."),
        ("MULTI", "MULTI belongs to a transaction, and a block sends a single command."),
        ("CLIENT", "CLIENT changes the connection, and a block opens one for a single command."),
        ("Config  set", "CONFIG SET administers the server."),
        ("SCRIPT FLUSH", "SCRIPT FLUSH administers the server."),
        ("XINFO", "XINFO has a second word."),
        ("GET a", "GET has no second word."),
        ("<start.c>", "'<start.c>' is not the name of a command."),
        (" ", "Command is required."),
    ],
)
def test_a_command_that_is_refused_is_a_finding(command: str, message: str) -> None:
    assert findings(command=command) == [message]


def test_the_server_is_a_setting_or_has_a_connection() -> None:
    assert findings(server="<start.s>") == ["Server must be ${NAME}."]
    assert findings(server="redis://h:1/0") == ["Server must not contain an address."]
    assert findings(server="redis://u:pw@h:1/0", connection="crm") == ["Server must not contain a password."]
    assert findings(server="mysql://h:1/0", connection="crm") == ["A connection signs in to Redis."]
    assert findings(server="rediss://h:1/0", connection="crm") == []


@pytest.mark.parametrize(
    ("command", "effect", "on_lost"),
    [("GET", "read", "retry"), ("xinfo stream", "read", "retry"), ("SET", "write", "ask"), ("NEW.ONE", "write", "ask")],
)
def test_reading_is_repeated_and_a_change_asks(command: str, effect: str, on_lost: str) -> None:
    (node,) = [node for node in compiled(command=command).plan.nodes if node.id == "a"]
    assert (node.effect, node.policy.on_lost) == (effect, on_lost)


def test_the_model_chooses_arguments_alone() -> None:
    tool = {"name": "t", "block": "redis", "params": {"server": "{{x}}", "command": "{{x}}", "arguments": ["{{x}}"]}}
    [read] = read_tools([tool], written=[{"params": {"server": "${CACHE}", "command": "GET"}}]).values()
    assert params_of(read, {"x": 1}) == {"server": "{{x}}", "command": "{{x}}", "arguments": [1]}
    assert effect_of(read, {"command": "GET"}) == "read" and effect_of(read, {"command": "DEL"}) == "write"
    with pytest.raises(BlockError, match="must have its server and its command written"):
        read_tools([tool], written=[{"params": {"server": "${CACHE}", "command": "<start.c>"}}])


async def test_runs(tmp_path: Path, port: int) -> None:
    place = f"127.0.0.1:{port}"
    async with engine_on(tmp_path / "weft.db", allow_private=[place]) as engine:
        await engine.secrets.set("CACHE", f"redis://:{quote(PASSWORD, safe='')}@{place}/0", [place])
        made = await ran(
            engine,
            chain(
                "a", "b", "c", "d",
                a=given("hset", "h", "n", 1, "doc", {"of": "<start.of>"}, "text", "<start.of>"),
                b=given("HGETALL", "h"), c=given("HGETALL", "h", parse_json=True),
                d=given("MGET", arguments="<start.keys>"),
            ),
            input={"of": "tea", "keys": ["none", "h2"]},
        )  # fmt: skip
        results = {name: output["result"] for name, output in outputs(made).items() if name != "start"}
        texts = {"n": "1", "doc": '{"of":"tea"}', "text": "tea"}
        assert results == {"a": 3, "b": texts, "c": texts | {"n": 1, "doc": {"of": "tea"}}, "d": [None, None]}
        for params, message in (
            (given("GET", None), "argument 1 has no value"),
            (given("BLPOP", "a", 0), "above 0 and below timeout_s, 30"),
            (given("XREAD", "BLOCK", "0", "STREAMS", "a", "$"), "above 0"),
        ):
            error = (await ran(engine, chain("a", a=params))).error
            assert error is not None and error["code"] == "params_invalid" and message in error["message"], error
        await engine.connections.put("crm", Connection("basic", PASSWORD, "ada"), [place], by="ada")
        signed_in = given("GET", "a", server=f"redis://{place}/0", connection="crm")
        assert (await ran(engine, chain("a", a=signed_in))).status == "succeeded"
        refused = await ran(engine, chain("a", a=given("SET", "a", 1, server=f"redis://{place}/0", connection="crm")))
        assert refused.error is not None and refused.error["code"] == "redis_failed"
        data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
        assert PASSWORD.encode() not in data and quote(PASSWORD, safe="").encode() not in data


async def test_a_change_whose_answer_is_lost_needs_attention(tmp_path: Path, port: int) -> None:
    async with in_front_of(port, lambda data: b"INCR" in data) as lossy:
        place = f"127.0.0.1:{lossy}"
        async with engine_on(tmp_path / "weft.db", allow_private=[place]) as engine:
            await engine.secrets.set("CACHE", f"redis://:{quote(PASSWORD, safe='')}@{place}/0", [place])
            run = (await engine.submit(chain("a", a=given("INCR", "lost")))).run
            await until_event(engine, run, "wait.opened", "a")
            [wait] = await engine.waits.list(run=run)
            assert (wait.kind, wait.actions) == ("attention", ("retry", "done", "fail"))


@pytest.mark.proof
async def test_a_change_is_not_repeated_after_a_crash_without_asking(port: int) -> None:
    place = f"127.0.0.1:{port}"
    made = chain("a", "b", a=given("SET", "crashed", 1), b=given("GET", "crashed"))
    address = f"redis://:{quote(PASSWORD, safe='')}@{place}/0"
    report = await crash_everywhere(
        made, env={"CACHE": address}, secrets=["CACHE"], allow_private=[place], compare=lambda end: end["status"]
    )
    assert report.asked == ("a",), "the one that only reads was repeated"

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.vault.command import SecretsCommand
from executor.blocks.vault.sealing import Keys
from executor.errors import BadRequest, Conflict, NotFound
from executor.open.embed import open_engine
from executor.open.engine import Engine
from executor.service.topics.secrets import SecretView
from tests.support.dev_model import dev_model
from tests.support.endpoints import Request, answer, http
from tests.support.runs import engine_on
from tests.support.service import Service, serve
from tests.unit.executor.kernel.values.test_redact_secrets import SPELLINGS

VALUE = "p@ss+w rd9 & more"
KEY = b"k" * 32


@asynccontextmanager
async def opened(tmp_path: Path, service: Service, **more: Any) -> AsyncIterator[Engine]:
    async with open_engine(tmp_path / "weft.db", secret=KEY, allow_private=[service.place], **more) as engine:
        yield engine


def call(url: str, **params: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "calls",
        "blocks": {
            "start": {"type": "start", "name": "Start"},
            "call": {
                "type": "http",
                "name": "Call",
                "params": {"url": url, **params},
                "policy": {"retry": {"max_attempts": 1}},
            },
        },
        "edges": [{"source": "start", "target": "call"}],
    }


async def test_a_block_gets_the_newest_value_and_nothing_records_it(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service) as engine:
        document = call(f"{service.url}/echo", query={"key": "${API_KEY}"}, method="POST", body={"k": "${API_KEY}"})
        for value in (VALUE, "another value 1"):
            await engine.secrets.set("API_KEY", value, [f"http://{service.place}"], by="ada")
            run = await engine.run(document, {}, timeout_s=60)
            assert run.status == "succeeded", run.error
            assert service.calls[-1].body == {"k": value}
            assert value not in str(run.output)
        (view,) = await engine.secrets.all()
        assert isinstance(view, SecretView) and (view.version, view.created_by) == (2, "ada")
        assert view.last_used_at_ms is not None and view.readable and not view.in_environment
    data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
    assert VALUE.encode() not in data and b"another value 1" not in data
    assert b"p%40ss" not in data and b"p@ss" not in data


async def test_a_secret_is_not_sent_to_another_host(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service) as engine:
        document = call(f"{service.url}/echo", headers={"Authorization": "Bearer ${API_KEY}"})
        for hosts in ([], ["api.example.com"]):
            await engine.secrets.set("API_KEY", VALUE, hosts)
            run = await engine.run(document, {}, timeout_s=60)
            assert run.status == "failed" and run.error is not None and run.error["code"] == "secret_host_refused"
        assert service.calls == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("echoed", [False, True])
async def test_a_redirect_to_another_host_is_not_followed_with_a_secret(
    tmp_path: Path, status: int, echoed: bool
) -> None:
    """`echoed`: the permitted host puts what it got into the address of the next one."""
    async with http(lambda _: answer(200, b"{}")) as other:

        def away(request: Request) -> bytes:
            query = request.target.partition("?")[2] if echoed else ""
            return answer(status, location=f"{other.url}/x?{query}")

        async with (
            http(away) as permitted,
            open_engine(tmp_path / "weft.db", secret=KEY, allow_private=[permitted.place, other.place]) as engine,
        ):
            await engine.secrets.set("API_KEY", VALUE, [f"http://{permitted.place}"])
            document = call(f"{permitted.url}/a", headers={"Accept": "${API_KEY}"}, query={"key": "${API_KEY}"})
            run = await engine.run(document, {}, timeout_s=60)
            assert len(permitted.seen) == 1 and other.seen == []
        assert run.error is not None and run.error["code"] == "secret_host_refused"
        data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*")) + str(run).encode()
        assert VALUE.encode() not in data and b"p%40ss" not in data


@pytest.mark.parametrize(
    "block",
    [
        {"type": "set", "params": {"value": "${API_KEY}"}},
        {"type": "function", "params": {"code": 'return "${API_KEY}".split("").reverse()'}},
        {"type": "email", "params": {"to": "a@b.test", "subject": "${API_KEY}"}},
        {"type": "response", "params": {"headers": {"X-Key": "${API_KEY}"}, "body": 1}},
        {
            "type": "agent",
            "params": {
                "model": "dev:m",
                "prompt": "x",
                "tools": [
                    {
                        "name": "mail",
                        "block": "email",
                        "params": {"to": "a@b.test", "subject": "x", "text": "${API_KEY}"},
                    }
                ],
            },
        },
    ],
)
async def test_a_secret_stands_in_no_other_param(tmp_path: Path, block: dict[str, Any]) -> None:
    async with serve() as service, opened(tmp_path, service) as engine:
        await engine.secrets.set("API_KEY", VALUE, [f"http://{service.place}"])
        document = call(service.url)
        document["blocks"]["call"] = {**block, "name": "Other"}
        run = await engine.run(document, {}, timeout_s=60)
        assert run.status == "failed" and run.error is not None and run.error["code"] == "secret_misplaced"


async def test_a_process_that_has_not_used_a_secret_keeps_it_out_of_what_it_records(tmp_path: Path) -> None:
    """The service gives it back later, to a block that does not name it, after a restart."""
    spelled = {name: spell(VALUE) for name, spell in SPELLINGS.items()}
    async with http(lambda _: answer(200, orjson.dumps(spelled), content_type="application/json")) as service:
        more: dict[str, Any] = {"secret": KEY, "allow_private": [service.place]}
        async with open_engine(tmp_path / "weft.db", **more) as engine:
            await engine.secrets.set("API_KEY", VALUE, [f"http://{service.place}"])
        async with open_engine(tmp_path / "weft.db", **more) as engine:
            document = call(f"{service.url}/settings")
            document["blocks"]["read"] = {
                "type": "function",
                "name": "Read",
                "params": {"code": "console.log(<call.body>); return [<call.body>]"},
            }
            document["edges"].append({"source": "call", "target": "read"})
            run = await engine.run(document, {}, timeout_s=60)
            assert run.status == "succeeded", run.error
            records = [orjson.loads(record.data or b"{}") for record in await engine.store.read_events(run.id)]
            said = repr((run, await engine.runs.view(run.id), records))
    data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
    assert [name for name, text in spelled.items() if text in said or text.encode() in data] == []


async def test_what_is_refused(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service, env={"TAKEN": "environment"}) as engine:
        with pytest.raises(BadRequest, match="at least 8"):
            await engine.secrets.set("API_KEY", "1234567")
        with pytest.raises(BadRequest, match="capital letters"):
            await engine.secrets.set("api key", VALUE)
        with pytest.raises(BadRequest, match="is not a host"):
            await engine.secrets.set("API_KEY", VALUE, ["http://api.example.com"])
        with pytest.raises(Conflict, match="environment"):
            await engine.secrets.set("TAKEN", VALUE)
        with pytest.raises(NotFound):
            await engine.secrets.delete("API_KEY")
        assert await engine.secrets.all() == []


async def test_sealing_with_another_key_continues_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"KEY_{n:02}" for n in range(45)]
    async with serve() as service:
        async with opened(tmp_path, service) as engine:
            for name in names:
                await engine.secrets.set(name, f"value of {name}")
            engine.parts.vault.keys = both = Keys(b"n" * 32, KEY)
            reseal, left = engine.store.reseal_secrets, [2]

            async def interrupted(changes: Any) -> int:
                if not left[0]:
                    raise KeyboardInterrupt
                left[0] -= 1
                return await reseal(changes)

            monkeypatch.setattr(engine.store, "reseal_secrets", interrupted)  # stands for a kill between two
            with pytest.raises(KeyboardInterrupt):
                await engine.secrets.reseal()
            monkeypatch.undo()  # the next process
            rows = await engine.store.list_secrets()
            assert sum(row.key_id == both.id for row in rows) == 40
            assert [both.open(row) for row in rows] == [f"value of {name}" for name in names]
            assert await engine.secrets.reseal() == 5
            assert await engine.secrets.reseal() == 0
            engine.parts.vault.keys = Keys(b"n" * 32)
            assert all(view.readable for view in await engine.secrets.all())
        with closing(sqlite3.connect(tmp_path / "weft.db")) as db:
            assert db.execute("SELECT count(DISTINCT key_id) FROM secrets").fetchone() == (1,)


async def test_a_deleted_secret_cannot_be_used_by_the_process_that_has_used_it(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service) as engine:
        document = call(f"{service.url}/echo", method="POST", body={"k": "${API_KEY}"})
        await engine.secrets.set("API_KEY", VALUE, [f"http://{service.place}"])
        assert (await engine.run(document, {}, timeout_s=60)).status == "succeeded"
        await engine.store.delete_secret("API_KEY")  # by another process: this one is not told
        await engine.run(document, {}, timeout_s=60)
        assert service.calls[0].body == {"k": VALUE}
        assert all(VALUE not in str(call.body) for call in service.calls[1:]), "no host would be refused: it has no row"
        assert "API_KEY" not in engine.parts.vault.values


async def test_a_stored_name_is_known_to_findings(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service) as engine:
        document = call(f"{service.url}/echo", headers={"Authorization": "Bearer ${API_KEY}"})

        async def codes() -> list[str]:
            return [finding.code for finding in (await engine.parts.compiler.compile(document)).diagnostics]

        assert await codes() == ["env_unknown"]
        await engine.secrets.set("API_KEY", VALUE, [f"http://{service.place}"])
        assert await codes() == []
        await engine.secrets.delete("API_KEY")
        assert await codes() == ["env_unknown"]


async def test_a_stored_name_in_a_place_that_is_not_for_secrets_is_a_finding(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service) as engine:
        document = call(f"{service.url}/echo", headers={"Authorization": "Bearer ${API_KEY}"})
        document["blocks"]["fn"] = {"type": "function", "params": {"code": "return ${API_KEY} + 1"}}
        document["blocks"]["fn"]["policy"] = {"skip_if": "${API_KEY} === 'x'"}
        await engine.secrets.set("API_KEY", VALUE, [f"http://{service.place}"])
        compiled = await engine.parts.compiler.compile(document)
        found = [each for each in compiled.diagnostics if each.code == "secret_misplaced"]
        assert [each.pointer for each in found] == ["/blocks/fn/params/code", "/blocks/fn/policy/skip_if"]
        assert {(each.severity, each.block) for each in found} == {("warning", "fn")}
        assert "API_KEY" in found[0].message and "credential" in found[0].hint


async def test_a_name_that_is_not_stored_is_read_from_the_command(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service) as engine:
        program = f"""
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    found = {{"value": {VALUE!r}, "hosts": [{service.url!r}]}}
    print(json.dumps({{"id": asked["id"], "secrets": dict.fromkeys(asked["names"], found)}}), flush=True)
"""
        command = SecretsCommand([sys.executable, "-c", program])
        engine.parts.vault._command = engine.parts.services.secrets_command = command
        run = await engine.run(call(f"{service.url}/echo", method="POST", body={"k": "${IN_VAULT}"}), {}, timeout_s=60)
        assert run.status == "succeeded" and service.calls[-1].body == {"k": VALUE}
        assert VALUE not in str(run.output)
        run = await engine.run(call("http://127.0.0.1:9/", headers={"K": "${IN_VAULT}"}), {}, timeout_s=60)
        assert run.error is not None and run.error["code"] == "secret_host_refused"
        document = call(f"{service.url}/echo")
        document["blocks"]["call"] = {"type": "function", "params": {"code": "return ${IN_VAULT}"}}
        run = await engine.run(document, {}, timeout_s=60)
        assert run.error is not None and run.error["code"] == "secret_misplaced"
    data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
    assert VALUE.encode() not in data


def _tool(name: str, url: str, key: str) -> dict[str, Any]:
    fields = {"properties": {"to": {"type": "string"}}}
    params = {"url": url, "headers": {"Authorization": f"Basic ${{{key}}}", "X-To": "{{to}}"}}
    return {"name": name, "block": "http", "params": params, "arguments": fields}


async def test_an_agent_sends_each_secret_to_its_own_host(tmp_path: Path) -> None:
    """Three servers with a key each: that of the model, and those of two tools. A third tool has the key of another."""
    called = [{"name": name, "arguments": {"to": "x"}} for name in ("first", "second", "wrong")]
    async with (
        dev_model({"when": {"tool": ""}, "calls": called}, {"text": "{{tool}}"}) as model,
        http(lambda _: answer(200, b"1")) as one,
        http(lambda _: answer(200, b"2")) as two,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}, allow_private=[one.place, two.place]) as engine,
    ):
        await engine.secrets.set("MODEL_KEY", "key of the model", ["http://" + model.url.split("/")[2]])
        await engine.secrets.set("ONE", "user:p@ss of one", [f"http://{one.place}"])
        await engine.secrets.set("TWO", "user:p@ss of two", [f"http://{two.place}"])
        document = call(one.url)
        tools = [
            _tool("first", f"{one.url}/echo", "ONE"),
            _tool("second", f"{two.url}/echo", "TWO"),
            _tool("wrong", f"{two.url}/echo", "ONE"),
        ]
        params = {"model": "dev:m", "api_key": "${MODEL_KEY}", "prompt": "x", "tools": tools}
        document["blocks"]["call"] = {"type": "agent", "name": "Agent", "params": params}
        run = await engine.run(document, {}, timeout_s=60)
        assert run.status == "succeeded", run.error
        assert [each.headers["authorization"] for each in one.seen] == ["Basic user:p@ss of one"]
        assert [each.headers["authorization"] for each in two.seen] == ["Basic user:p@ss of two"]
        errors = [each["error"] for each in run.output["tool_calls"]]
        assert errors[:2] == [None, None] and "the secret ONE cannot be sent" in errors[2]

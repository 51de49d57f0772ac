"""Secrets of the environment: the rules of stored ones for places and hosts, and keys of models for their servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.values.redact import MARK
from executor.open.embed import open_engine
from executor.open.engine import Engine
from server.app import build_engine
from server.reach import SettingsError
from server.settings import Settings, load_settings
from tests.support.documents import chain
from tests.support.endpoints import Request, answer, http

VALUE = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYzEXAMPLEKEY"
ONCE = {"policy": {"retry": {"max_attempts": 1}}}


def settings(path: Path, **names: str) -> Settings:
    own = {"WEFT_DB": str(path / "weft.db"), "WEFT_SECRET_KEY": "a secret for tests only", "WEFT_TOKEN": "off"}
    return load_settings({**own, **names})


@asynccontextmanager
async def server(path: Path, **names: str) -> AsyncIterator[Engine]:
    engine = await build_engine(settings(path, **names))
    try:
        yield engine
    finally:
        await engine.close()


async def ran(engine: Engine, type: str, **params: Any) -> Any:
    return await engine.run(chain("a", a={"type": type, "params": params, **ONCE}), {}, timeout_s=60)


def echo(request: Request) -> bytes:
    return answer(200, body=request.headers.get("x-key", "").encode() + b" " + request.target.encode())


async def test_code_does_not_get_it(tmp_path: Path) -> None:
    async with server(tmp_path, WEFT_SECRET_API_KEY=VALUE) as engine:
        code = "return [...'${API_KEY}'].map(c => c.charCodeAt(0))"
        found = await engine.workflows.validate(chain("a", a={"type": "function", "params": {"code": code}}))
        assert "secret_misplaced" in [each.code for each in found]
        run = await ran(engine, "function", code=code)
        assert run.error is not None and run.error["code"] == "secret_misplaced"
        assert VALUE not in engine.parts.vault.values.values(), "blocks hold a handle"


async def test_it_goes_to_its_hosts_alone(tmp_path: Path) -> None:
    seen: list[str] = []

    def hear(request: Request) -> bytes:
        seen.append(request.headers.get("x-key", ""))
        return echo(request)

    async with http(hear) as right, http(hear) as wrong:
        names = {"WEFT_ALLOW_PRIVATE": f"{right.place},{wrong.place}", "WEFT_SECRET_API_KEY": VALUE}
        async with server(tmp_path, **names, WEFT_SECRET_HOSTS_API_KEY=f"api.example.com, {right.url}") as engine:
            run = await ran(engine, "http", url=right.url, headers={"X-Key": "${API_KEY}"})
            assert run.status == "succeeded" and seen == [VALUE]
            assert VALUE not in str(run) and MARK in str(run.output)
            run = await ran(engine, "http", url=f"{wrong.url}/steal?k=${{API_KEY}}")
            assert run.error["code"] == "secret_host_refused" and seen == [VALUE]
            expected = f"start the server with WEFT_SECRET_HOSTS_API_KEY=api.example.com,{right.url},{wrong.url}"
            assert run.error["hint"] == expected


async def test_without_hosts_it_goes_nowhere_and_the_error_names_the_variable(tmp_path: Path) -> None:
    async with http(echo) as service:
        names = {"WEFT_ALLOW_PRIVATE": service.place, "WEFT_SECRET_API_KEY": VALUE}
        async with server(tmp_path, **names) as engine:
            run = await ran(engine, "http", url=service.url, headers={"X-Key": "${API_KEY}"})
            assert run.error["code"] == "secret_host_refused" and "nowhere" in run.error["message"]
            assert run.error["hint"] == f"start the server with WEFT_SECRET_HOSTS_API_KEY={service.url}"


async def test_the_switch_lifts_the_rules(tmp_path: Path) -> None:
    async with http(echo) as service:
        names = {"WEFT_ALLOW_PRIVATE": service.place, "WEFT_SECRET_API_KEY": VALUE, "WEFT_UNBOUND_SECRETS": "true"}
        async with server(tmp_path, **names) as engine:
            run = await ran(engine, "http", url=service.url, headers={"X-Key": "${API_KEY}"})
            assert run.status == "succeeded" and VALUE not in str(run)
            assert (await ran(engine, "function", code="return '${API_KEY}'.length")).output["result"] == len(VALUE)


async def test_a_key_of_a_model_is_for_its_server_alone(tmp_path: Path) -> None:
    names = {"WEFT_SECRET_OPENAI_API_KEY": VALUE, "WEFT_MODEL_LOCAL": "http://127.0.0.1:9/v1"}
    async with server(tmp_path, **names, WEFT_SECRET_LOCAL_API_KEY=VALUE[::-1]) as engine:
        for name in ("OPENAI_API_KEY", "LOCAL_API_KEY"):
            given = {"url": "http://127.0.0.1:9/", "headers": {"X-Key": f"${{{name}}}"}}
            found = await engine.workflows.validate(chain("a", a={"type": "http", "params": given}))
            assert [each.code for each in found] == ["env_unknown"], found
            assert name not in engine.parts.vault.values
        assert (await ran(engine, "set", value=f"{VALUE} {VALUE[::-1]}")).output == f"{MARK} {MARK}"


async def test_a_webhook_is_checked_with_it(tmp_path: Path) -> None:
    async with server(tmp_path, WEFT_SECRET_HOOK=VALUE) as engine:
        hook = {"type": "webhook", "params": {"secret_env": "HOOK"}}
        document = {"format": "weft/1", "name": "hooked", "blocks": {"hook": hook}, "edges": []}
        await engine.workflows.save(document)
        row = await engine.store.get_webhook("hooked:hook")
        assert row is not None and engine.webhooks._known_secret(row) == VALUE


def test_hosts_of_nothing_and_what_is_no_host_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="WEFT_SECRET_API_KEY is not"):
        settings(tmp_path, WEFT_SECRET_HOSTS_API_KEY="api.example.com")
    with pytest.raises(SettingsError, match="needs no hosts"):
        settings(tmp_path, WEFT_SECRET_OPENAI_API_KEY=VALUE, WEFT_SECRET_HOSTS_OPENAI_API_KEY="a.example")
    with pytest.raises(SettingsError, match="'a b' is not a host"):
        settings(tmp_path, WEFT_SECRET_API_KEY=VALUE, WEFT_SECRET_HOSTS_API_KEY="a b")


async def test_an_engine_in_a_program_has_the_same_rules(tmp_path: Path) -> None:
    async with http(echo) as service:
        places = {"allow_private": [service.place], "env": {"API_KEY": VALUE, "REGION": "north"}}
        async with open_engine(tmp_path / "weft.db", secrets={"API_KEY": [service.url]}, **places) as engine:  # type: ignore[arg-type]
            run = await ran(engine, "http", url=f"{service.url}/${{REGION}}", headers={"X-Key": "${API_KEY}"})
            assert run.status == "succeeded" and VALUE not in str(run)
            run = await ran(engine, "function", code="return '${API_KEY}'.length")
            assert run.error["code"] == "secret_misplaced"
        async with open_engine(tmp_path / "weft.db", secrets=["API_KEY"], **places) as engine:  # type: ignore[arg-type]
            assert (await ran(engine, "function", code="return '${API_KEY}'.length")).output["result"] == len(VALUE)

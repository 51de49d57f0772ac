"""The sql block: findings, its effect in a plan, and its output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from compiler.compile import compile_document
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.blocks.types.sql import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done
from tests.unit.executor.blocks.types.flow import context


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    sandbox = Sandbox()
    yield Registry.load(sandbox=sandbox)
    sandbox.close()


def _compiled(registry: Registry, **params: Any) -> Any:
    blocks = {
        "start": {"type": "start"},
        "ask": {"type": "sql", "params": {"database": "a.db", "query": "SELECT 1"} | params},
    }
    document = {"format": "weft/1", "name": "w", "blocks": blocks, "edges": [{"source": "start", "target": "ask"}]}
    return compile_document(document, registry)


def _findings(registry: Registry, **params: Any) -> list[tuple[str, str]]:
    return [(found.code, found.message) for found in _compiled(registry, **params).diagnostics]


@pytest.mark.parametrize(
    "query", ["SELECT <start.id>", "SELECT '${KEY}'", "SELECT <start.rows[0].id ?? 1>", "WHERE a = <ask.x>"]
)
def test_a_reference_in_a_query_is_a_finding(registry: Registry, query: str) -> None:
    ((code, message),) = _findings(registry, query=query)
    assert code == "param_invalid"
    assert "contains the reference" in message


def test_comparisons_are_no_references(registry: Registry) -> None:
    assert _findings(registry, query="SELECT a <b AND c> d, a<>b, a <b.c AND d> e") == []


def test_a_parameter_that_is_missing_is_a_finding(registry: Registry) -> None:
    assert "uses :id" in _findings(registry, query="SELECT :id", parameters={"other": 1})[0][1]
    assert "uses :id" in _findings(registry, query="SELECT :id")[0][1]
    assert _findings(registry, query="SELECT :id", parameters={"id": "<start.id>"}) == []
    assert _findings(registry, query="SELECT :id", parameters="<start.all>") == []
    assert _findings(registry, query="SELECT 'it\\'s :id'") == []  # MySQL's, if the address is in a secret


@pytest.mark.parametrize("database", ["<start.db>", "postgresql://u:p@host/db", "postgresql://${HOST}/db", "${A}${B}"])
def test_the_database_is_a_setting_or_a_file(registry: Registry, database: str) -> None:
    assert [code for code, _ in _findings(registry, database=database) if code != "env_unknown"] == ["param_invalid"]
    assert _findings(registry, database="sqlite:reports/a.db") == []


def test_reading_is_repeated_and_a_change_asks(registry: Registry) -> None:
    for read_only, effect, on_lost in ((None, "read", "retry"), (True, "read", "retry"), (False, "write", "ask")):
        params = {} if read_only is None else {"read_only": read_only}
        (node,) = [node for node in _compiled(registry, **params).plan.nodes if node.id == "ask"]
        assert (node.effect, node.policy.on_lost) == (effect, on_lost)


async def _output(tmp_path: Path, **params: Any) -> dict[str, Any]:
    services = Services(sandbox=cast(Any, None), http=GuardedClient(), sqlite_folders=(str(tmp_path),))
    given = {"database": "a.db", "query": "SELECT :n AS n", "parameters": {"n": 1}} | params
    try:
        done = await block.run(context(given, services=services))
    finally:
        await services.databases.close()
    assert isinstance(done, Done)
    return cast(dict[str, Any], done.output)


async def test_output(tmp_path: Path) -> None:
    made = await _output(tmp_path, query="CREATE TABLE t AS SELECT :n AS n", read_only=False)
    assert (made["rows"], made["count"]) == ([], 0)
    output = await _output(tmp_path, max_rows="10")
    assert output.pop("ms") >= 0
    assert output == {"rows": [{"n": 1}], "columns": ["n"], "count": 1, "cut": None, "affected": None}


@pytest.mark.parametrize(
    "params",
    [{"max_rows": 0}, {"max_rows": 10_001}, {"max_rows": "x"}, {"timeout_s": "x"}, {"parameters": [1]}, {"query": " "},
     {"database": "${REPORTS}"}, {"database": None}],
)  # fmt: skip
async def test_params_of_no_use(tmp_path: Path, params: dict[str, Any]) -> None:
    with pytest.raises(BlockError) as caught:
        await _output(tmp_path, **params)
    assert (caught.value.code, caught.value.retryable) == ("params_invalid", False)

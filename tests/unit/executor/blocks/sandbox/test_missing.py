"""An installation without the extra `js`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

import weft
from compiler.diagnostics import CompileError
from executor.blocks.sandbox import missing
from executor.kernel.process.extras import install

WASM = tuple(f"executor.blocks.sandbox.{name}" for name in ("wasm", "engine", "guest"))


@pytest.fixture
async def engine(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[weft.Engine]:
    monkeypatch.setattr(missing, "_is_missing", lambda: True)
    for name in WASM:
        monkeypatch.delitem(sys.modules, name, raising=False)
    async with weft.open() as opened:
        yield opened


def document(**block: Any) -> dict[str, Any]:
    """Return a document whose block `b` leads to another by its first handle."""
    blocks = {"start": {"type": "start"}, "b": block, "end": {"type": "set", "params": {"value": "large"}}}
    handle = {"handle": "large"} if block["type"] == "condition" else {}
    edges = [{"source": "start", "target": "b"}, {"source": "b", "target": "end", **handle}]
    return {"format": "weft/1", "name": "w", "blocks": blocks, "edges": edges}


def condition(when: str) -> dict[str, Any]:
    cases = [{"id": "large", "when": when}, {"id": "else", "when": ""}]
    return document(type="condition", params={"cases": cases})


@pytest.mark.parametrize(
    "broken",
    [
        document(type="function", params={"code": "return [1].map(x => x + 1)"}),
        document(type="function", params={"code": "return 1", "language": "python"}),
        condition("[<start.n>].every(x => x > 1)"),
    ],
)
async def test_a_document_with_code_is_an_error_that_names_the_packages(engine: weft.Engine, broken: Any) -> None:
    with pytest.raises(CompileError) as refused:
        await engine.run(broken, {"n": 2})
    [error] = [each for each in refused.value.diagnostics if each.severity == "error"]
    assert (error.code, error.block) == ("sandbox_missing", "b")
    assert error.hint == install("js") and "wasmtime" in error.hint


async def test_simple_expressions_have_results_and_others_a_clear_error(engine: weft.Engine) -> None:
    simple = condition("<start.n> > 1")
    assert (await engine.run(simple, {"n": 2})).output == "large"
    failed = await engine.run(simple, {"n": "2"})  # JavaScript would turn this text into a number
    assert failed.error is not None
    assert (failed.status, failed.error["code"], failed.error["hint"]) == ("failed", "sandbox_missing", install("js"))

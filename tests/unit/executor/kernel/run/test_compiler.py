"""Documents compiled once for each trigger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compiler.diagnostics import CompileError
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from executor.kernel.process.threads import aside
from executor.kernel.run import compiler as module
from executor.kernel.run.compiler import Compiler

DOCUMENT: dict[str, Any] = {
    "format": "weft/1",
    "blocks": {"start": {"type": "start"}, "a": {"type": "set", "after": "start", "params": {"values": {}}}},
}


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    sandbox = Sandbox(threads=1)
    yield Registry.load(sandbox=sandbox)
    sandbox.close()


async def test_a_document_is_compiled_once(registry: Registry) -> None:
    compiler = Compiler(registry, ())
    first = await compiler.compile(DOCUMENT)
    assert await compiler.compile(dict(DOCUMENT)) is first
    assert await compiler.compile(DOCUMENT, "start") is not first


async def test_the_oldest_result_goes_first(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESULTS_MAX", 2)
    compiler = Compiler(registry, ())
    a, b = [await compiler.compile({**DOCUMENT, "name": name}) for name in "ab"]
    await compiler.compile({**DOCUMENT, "name": "c"})
    assert await compiler.compile({**DOCUMENT, "name": "b"}) is b
    assert await compiler.compile({**DOCUMENT, "name": "a"}) is not a


async def test_a_large_document_and_one_with_python_are_compiled_in_a_thread(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = 0

    async def counted(work):  # type: ignore[no-untyped-def]
        nonlocal threads
        threads += 1
        return await aside(work)

    monkeypatch.setattr(module, "aside", counted)
    compiler = Compiler(registry, ())
    await compiler.compile(DOCUMENT)
    assert threads == 0
    large = {**DOCUMENT, "description": "x" * module.COMPILE_ASIDE_BYTES}
    assert (await compiler.compile(large)).plan is not None
    assert threads == 1
    code = {"type": "function", "after": "start", "params": {"language": "python", "code": "return 1"}}
    assert (await compiler.compile({**DOCUMENT, "blocks": {**DOCUMENT["blocks"], "a": code}})).plan is not None
    assert threads == 2


async def test_a_plan_or_what_is_wrong(registry: Registry) -> None:
    compiler = Compiler(registry, ())
    assert (await compiler.plan(DOCUMENT)).hash
    with pytest.raises(CompileError):
        await compiler.plan({"format": "weft/1", "blocks": {"a": {"type": "unknown"}}})

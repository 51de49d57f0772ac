"""A document as large as one may be delays no other request: it is compiled beside the event loop."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import orjson
import pytest

from compiler.compile import Compiled, compile_document
from executor.kernel.run import compiler
from executor.kernel.run.compiler import COMPILE_ASIDE_BYTES
from tests.support.documents import in_a_row, value


def long(blocks: int) -> dict[str, Any]:
    """A start block and as many others, one after the other."""
    return in_a_row("long", {f"b{i}": value({"text": "x" * 40}) for i in range(blocks)})


@pytest.fixture
def compiled_in(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which documents were compiled, in order."""
    threads: list[threading.Thread] = []

    def watched(*args: Any, **options: Any) -> Compiled:
        threads.append(threading.current_thread())
        return compile_document(*args, **options)

    monkeypatch.setattr(compiler, "compile_document", watched)
    return threads


async def test_small_ones_are_compiled_at_once_and_large_ones_beside(
    client: httpx.AsyncClient, compiled_in: list[threading.Thread]
) -> None:
    small, large = long(5), long(1_999)
    assert len(orjson.dumps(small)) < COMPILE_ASIDE_BYTES < len(orjson.dumps(large))
    for given in (small, large):
        assert (await client.post("/api/validate", json=given)).json() == {
            "valid": True,
            "diagnostics": [],
            "tasks": [],
        }
    assert [thread is threading.main_thread() for thread in compiled_in] == [True, False]


async def test_every_way_in_takes_the_largest(client: httpx.AsyncClient, compiled_in: list[threading.Thread]) -> None:
    def given(name: str) -> dict[str, Any]:
        return {**long(1_999), "name": name}  # a name of its own each: what was compiled is remembered

    draft = await client.post("/api/drafts", json={"document": given("drafted")})
    saved = await client.put(
        f"/api/drafts/{draft.json()['id']}", json={"document": given("changed")}, headers={"If-Match": '"1"'}
    )
    stored = await client.post("/api/workflows", json=given("stored"))
    run = await client.post("/api/runs", json={"document": given("run")})
    assert [each.status_code for each in (draft, saved, stored, run)] == [201, 200, 201, 202]
    assert len(compiled_in) == 4 and threading.main_thread() not in compiled_in
    await client.post(f"/api/runs/{run.json()['run']}/cancel")  # no client waits for it; it may have ended as well

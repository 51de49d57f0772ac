"""What a value costs is bounded before it is built, and large ones leave the event loop free."""

from __future__ import annotations

import asyncio
import math
import time
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from executor.errors import BlockError
from executor.kernel.values import payload
from executor.kernel.values.payload import DEPTH_MAX, SIZE_MAX_BYTES
from executor.open.embed import open_engine
from executor.open.engine import Engine
from tests.support.cost import no_collector
from tests.support.documents import in_a_row

MIB = 1024 * 1024


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with open_engine(functions={"wide": lambda: [{} for _ in range(400_000)]}) as engine:
        yield engine


def test_a_wide_value_is_checked_at_the_pace_of_its_encoding() -> None:
    """5 s before for what an http block may be answered; no paths are built for items that are in order."""
    value = orjson.loads(b"[" + b",".join([b"{}"] * 1_000_000) + b"]")
    with no_collector():
        began = time.thread_time()
        bare = 0
        for item in value:  # what one look at each item costs on this machine at this moment
            bare += type(item) is dict and not item
        floor = time.thread_time() - began
        began = time.thread_time()
        payload.encode(value)
        spent = time.thread_time() - began
    assert bare == len(value)
    assert spent < 12 * floor + 0.1, f"{spent:.2f} s, a bare loop takes {floor:.2f} s"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([None] * 100 + [math.nan], r"\$\[100\]"),
        ([{"a": {}}] * 100 + [{"a": {"b": [math.inf, None]}}], r"\$\[100\].a.b\[0\]"),
        ([{}] * 100 + [{"deep": [[]]}], ""),
    ],
)
def test_what_is_wrong_is_still_found_by_place(value: Any, place: str) -> None:
    if not place:
        payload.encode(value)
        return
    with pytest.raises(BlockError, match=place):
        payload.encode(value)


def test_an_empty_list_counts_as_deep_as_a_full_one() -> None:
    def nested(levels: int) -> Any:
        value: Any = []
        for _ in range(levels - 1):
            value = [value]
        return value

    payload.encode(nested(DEPTH_MAX))
    with pytest.raises(BlockError, match="nested more than 64 levels deep"):
        payload.encode([*[[]] * 100, nested(DEPTH_MAX)])


async def test_a_large_output_is_checked_beside_the_event_loop(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[bool] = set()
    check = payload.check

    def watched(value: Any, data: bytes) -> None:
        if len(data) > 100_000:
            try:
                asyncio.get_running_loop()
                threads.add(False)
            except RuntimeError:
                threads.add(True)
        check(value, data)

    monkeypatch.setattr("executor.kernel.run.border.check", watched)
    run = await engine.run(in_a_row("large", {"wide": {"type": "python", "name": "W", "params": {"function": "wide"}}}))
    assert run.status == "succeeded"
    assert threads == {True}


async def test_references_stop_at_the_bound_before_the_value_is_built(engine: Engine) -> None:
    """2,968 MB before: 3,000 references to 1 MB were put together, and only then measured."""
    many = ["<make.result.big>"] * 3000
    doc = in_a_row(
        "large",
        {
            "make": {
                "type": "function",
                "name": "Make",
                "params": {"code": "return {big: {items: Array(10000).fill('x'.repeat(80))}}"},
            },
            "set": {"type": "set", "name": "Set", "params": {"value": many}},
        },
    )
    tracemalloc.start()
    try:
        run = await engine.run(doc)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.status == "failed"
    assert run.error is not None and run.error["code"] == "payload_too_large"
    assert "more than 16777216 bytes" in run.error["message"]
    assert peak < 20 * SIZE_MAX_BYTES, f"{peak / MIB:.0f} MiB"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "email", "params": {"to": "a@example.com", "subject": "s", "body": ["<make.result.big>"] * 100}},
        {"type": "email", "params": {"to": "a@example.com", "subject": "s", "body": "<make.result.big> " * 100}},
        {
            "type": "http",
            "params": {"method": "POST", "url": "http://127.0.0.1:9/", "body": ["<make.result.big>"] * 100},
        },
    ],
)
async def test_mail_and_request_bodies_have_the_same_bound(engine: Engine, block: dict[str, Any]) -> None:
    """A mail body had no bound at all: 100 MB were sent."""
    make = {"type": "function", "name": "Make", "params": {"code": "return {big: 'x'.repeat(1000000)}"}}
    run = await engine.run(in_a_row("large", {"make": make, "out": {"name": "Out", **block}}))
    assert run.status == "failed"
    assert run.error is not None and run.error["code"] == "payload_too_large"


async def test_code_gets_no_more_than_fits_its_memory(engine: Engine) -> None:
    reads = ", ".join(f"<make.result.big ?? {n}>" for n in range(200))
    doc = in_a_row(
        "large",
        {
            "make": {"type": "function", "name": "Make", "params": {"code": "return {big: ['x'.repeat(900000)]}"}},
            "code": {"type": "function", "name": "Code", "params": {"code": f"return [{reads}].length"}},
        },
    )
    run = await engine.run(doc)
    assert run.status == "failed"
    assert run.error is not None and run.error["code"] == "code_memory"

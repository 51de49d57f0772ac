"""examples/durable: as short as the same programs in other systems, and they do what they promise. Crashes are in
tests/promises/test_durable_examples.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from examples.durable import etl
from weft import testing

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("program", "lines"), [("signup", 15), ("etl", 42), ("saga", 44)])
def test_they_are_at_most_as_long_as_in_dbos(program: str, lines: int) -> None:
    text = (ROOT / f"examples/durable/{program}.py").read_text()
    assert sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines()) <= lines


async def test_500_rows_are_loaded_ten_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(etl, "print", loaded.append, raising=False)
    many: list[int] = []
    of_row: Callable[[int], Awaitable[etl.Row]] = etl.extract.function
    under_way = 0

    async def extract(id: int) -> etl.Row:
        nonlocal under_way
        under_way += 1
        many.append(under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return await of_row(id)

    monkeypatch.setattr(etl.extract, "function", extract)
    async with testing.engine(workflows=[etl.etl]) as engine:
        run = await engine.run(etl.etl)
    assert (run.status, run.output) == ("succeeded", sum(len(f"row {n}") for n in range(500)))
    assert len(loaded) == 500 and max(many) == 10

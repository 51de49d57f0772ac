"""Extract, transform and load 500 rows, ten at a time."""

from dataclasses import dataclass

import weft


@dataclass
class Row:
    id: int
    text: str


@weft.step(effect="read", retries=3, timeout=30)
async def extract(id: int) -> Row:
    return Row(id, f"row {id}")


@weft.step(effect="none")
async def transform(row: Row) -> Row:
    return Row(row.id, row.text.upper())


@weft.step
async def load(row: Row) -> int:
    print(f"load {row.id}: {row.text}")
    return len(row.text)


async def one(id: int) -> int:
    return await load(await transform(await extract(id)))


@weft.durable
async def etl(rows: int = 500) -> int:
    return sum(await weft.gather(range(rows), one, at_most=10))

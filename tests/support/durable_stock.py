"""A durable function with a query and an update, for tests of a server."""

from __future__ import annotations

import weft


@weft.durable
async def stock(goods: list[str]) -> int:
    weft.state({"goods": goods})
    while True:
        asked = await stock.add.next()
        if asked.value == "stop":
            await asked.refuse("stopped")
            return len(goods)
        goods.append(asked.value)
        weft.state({"goods": goods})
        await asked.answer(len(goods))


@stock.query
def count(state: dict[str, list[str]], of: str = "") -> int:
    return sum(one.startswith(of) for one in state["goods"])


@stock.update
def add(good: str) -> int: ...  # type: ignore[empty-body]  # an update has a signature alone

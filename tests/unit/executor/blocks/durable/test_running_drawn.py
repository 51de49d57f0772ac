"""One function, drawn and durable: the same calls, in the same order, with the same values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import weft
from executor.open.testing.engines import engine
from executor.open.testing.play import finish

did: list[str] = []


@dataclass
class Address:
    street: str
    city: str = "Bergen"


@weft.step
def reserve(item: str) -> dict[str, str]:
    did.append(f"reserve {item}")
    return {"id": f"r-{item}"}


@weft.step
async def note(text: str) -> str:
    did.append(text)
    return text.upper()


async def told(item: str) -> str:
    await note(f"first {item}")
    return await note(f"then {item}")


async def order(item: str, parts: list[str]) -> dict[str, Any]:
    reserved = await reserve(item)
    await note("reserved")
    words, other = await weft.gather(told(item), note("beside"))
    answer = await weft.approve("Send it?", fields=Address)
    await weft.sleep(days=2)
    paid = await weft.signal("paid", item, type=Address)
    asked = await weft.form("Where?", type=Address)
    return {
        "id": reserved["id"],
        "words": [words, other],
        "answer": [answer.action, answer.fields.street],
        "paid": paid.city,
        "asked": asked.street,
        "parts": await weft.gather(parts, note),
    }


@pytest.mark.parametrize("made", [weft.workflow, weft.durable], ids=["drawn", "durable"])
async def test_it_means_the_same(made: Callable[[Any], Any]) -> None:
    did.clear()
    flow = made(order)
    answers = {
        "Send it?": {"action": "approve", "fields": {"street": "Main Street 1", "city": "Oslo"}},
        "paid": {"street": "x", "city": "Voss"},
        "Where?": {"street": "Quay 2", "city": "Oslo"},
    }
    async with engine(workflows=[flow]) as opened:
        run = (await opened.submit(flow, item="tea", parts=["a", "b"])).run
        view = await finish(opened, run, answers)
    assert view.output == {
        "id": "r-tea",
        "words": ["THEN TEA", "BESIDE"],
        "answer": ["approve", "Main Street 1"],
        "paid": "Voss",
        "asked": "Quay 2",
        "parts": ["A", "B"],
    }
    assert did[:2] == ["reserve tea", "reserved"]
    assert did.index("first tea") < did.index("then tea")
    assert sorted(did[2:5]) == ["beside", "first tea", "then tea"]
    assert sorted(did[5:]) == ["a", "b"]

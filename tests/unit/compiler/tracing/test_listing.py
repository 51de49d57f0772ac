"""The text of a durable function in its document, and the calls that are marked in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft
from compiler.tracing import listing
from executor.open.testing.engines import engine

TEXT = Path(__file__).read_text()
LINES = TEXT.splitlines()


@weft.step
async def charge(order: str) -> str:
    return str(await weft.call("not marked: it is in a step", order))


@weft.durable
async def below(order: str) -> str:
    return await charge(order)


async def helper(orders: list[str]) -> None:
    await weft.gather(orders, charge)  # marked: charge


@weft.durable
async def pays(below_: str, charge: str = "") -> None:
    """The parameter `charge` is no step."""
    print(charge)
    await below(below_)  # marked: below
    await helper([below_])
    async with weft.timeout(hours=1):  # marked: timeout
        await weft.first(weft.signal("paid"), weft.sleep(days=1))  # marked: signal, sleep
    await weft.call("other", {})  # marked: call


def source_of(function: weft.DurableFunction[..., Any]) -> dict[str, Any]:
    made: dict[str, Any] = function.document()["blocks"]["body"]["source"]
    return made


def test_it_is_the_module_with_the_calls_of_the_function() -> None:
    source = source_of(pays)
    assert (
        source["text"] == TEXT
        and source["file"] == "tests/unit/compiler/tracing/test_listing.py"
        and source["first_line"] == 1
    )
    assert LINES[source["line"] - 1].startswith("async def pays") and "marked: call" in LINES[source["end_line"] - 1]
    found: dict[int, list[str]] = {}
    for line, _, name in source["calls"]:
        found.setdefault(line, []).append(name)
    wanted = {
        n: line.split("# marked: ")[1].split(", ") for n, line in enumerate(LINES, 1) if line.count("  # marked: ") == 1
    }
    assert {line: sorted(names) for line, names in found.items()} == {
        line: sorted(names) for line, names in wanted.items() if "line.split" not in LINES[line - 1]
    }
    assert {kind for _, kind, _ in source["calls"]} == {"step", "wait", "call"}


def test_of_a_long_module_it_is_the_function_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "TEXT_BYTES_MAX", 2_000)
    whole = source_of(pays)
    cut = listing.listing_of(pays.function)
    assert cut is not None
    first = cut["first_line"]
    assert cut["text"].splitlines() == LINES[first - 1 : cut["end_line"]]
    assert cut["line"] == whole["line"] and all(line >= first for line, _, _ in cut["calls"])


def test_a_function_without_a_file_has_none() -> None:
    names: dict[str, Any] = {"__name__": "made"}
    exec("async def made(): ...", names)
    assert listing.listing_of(names["made"]) is None


async def test_the_plan_does_not_have_it() -> None:
    document = below.document()
    del document["blocks"]["body"]["source"]
    async with engine(workflows=[below]) as opened:
        with_it, without = [await opened.workflows.compile(one) for one in (below.document(), document)]
    assert with_it.diagnostics == without.diagnostics == []
    assert with_it.plan is not None and without.plan is not None and with_it.plan.hash == without.plan.hash

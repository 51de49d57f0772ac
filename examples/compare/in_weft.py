"""The five workflows in weft, as durable functions."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import weft
from examples.compare import outside

P = ParamSpec("P")
R = TypeVar("R")


def step(function: Callable[P, R], **options: Any) -> Callable[P, Awaitable[R]]:
    return weft.step(**options)(function)  # type: ignore[return-value]  # typed as not awaitable


RETRY = weft.Retry(2, first=0.1)
fetch, parse = step(outside.fetch, effect="read", retries=RETRY), step(outside.parse, effect="none")
count, total = step(outside.count, effect="none"), step(outside.total, effect="none")
draft, store, publish = step(outside.draft, effect="read"), step(outside.store), step(outside.publish)
before, after, apologise = step(outside.before), step(outside.after), step(outside.apologise)
by_card, by_invoice = step(outside.by_card, raises=(ValueError,)), step(outside.by_invoice)


@weft.durable
async def chain() -> int:
    return await store(await parse(await fetch()))


@weft.durable
async def fan(words: list[str]) -> int:
    return await total(await weft.gather(words, count))


@weft.durable
async def approval() -> str:
    text = await draft()
    answer = await weft.approve(f"Publish {text}?")
    return await publish(text) if answer.action == "approve" else "rejected"


@weft.durable
async def sleep() -> str:
    first = await before()
    await weft.sleep(6)
    return await after(first)


@weft.durable
async def branch(amount: int) -> str:
    if amount > 100:
        return await by_invoice(amount)
    try:
        return await by_card(amount)
    except ValueError as error:
        return await apologise(str(error))


# --- run

INPUTS = {"fan": {"words": ["a", "bb", "ccc"]}, "branch": {"amount": 5}}
FLOWS = {flow.name: flow for flow in (chain, fan, approval, sleep, branch)}


async def main(name: str, folder: str, answer: str | None = None) -> None:
    async with weft.open(Path(folder, "weft.db"), workflows=FLOWS.values(), secret=b"k" * 16) as engine:
        started = await engine.submit(FLOWS[name], input=INPUTS.get(name), idempotency_key=name)
        if answer:
            [wait] = await engine.waits.list()
            await engine.answer(wait.link, {}, answer)
        while (run := await engine.runs.view(started.run)).status in ("running", "queued", "waiting"):
            if any(wait.kind != "timer" for wait in await engine.waits.list()):
                return print("waiting")
            await asyncio.sleep(0.05)
        print(json.dumps(run.output))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

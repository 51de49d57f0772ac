"""The five workflows in weft."""

import asyncio
import json
import sys
from pathlib import Path

import weft
from examples.compare import outside

FIRM = {"max_attempts": 3, "initial_ms": 100}
fetch = weft.step(effect="read", retries=FIRM)(outside.fetch)
parse = weft.step(effect="none")(outside.parse)
store = weft.step(outside.store)
count = weft.step(effect="none")(outside.count)
total = weft.step(effect="none")(outside.total)
draft = weft.step(effect="read")(outside.draft)
publish = weft.step(outside.publish)
before, after = weft.step(outside.before), weft.step(outside.after)
by_card, by_invoice = weft.step(outside.by_card), weft.step(outside.by_invoice)
apologise = weft.step(outside.apologise)


@weft.workflow
def chain() -> int:
    return store(parse(fetch()))


@weft.workflow
def fan(words: list[str]) -> int:
    return total(weft.each(words, count))


@weft.workflow
def approval() -> str:
    text = draft()
    answer = weft.approve(f"Publish {text}?")
    return weft.when(answer.action == "approve", lambda: publish(text), lambda: "rejected")


@weft.workflow
def sleep() -> str:
    first = before()
    weft.sleep(6)
    return after(first)


@weft.workflow
def branch(amount: int) -> str:
    return weft.when(
        amount > 100,
        lambda: by_invoice(amount),
        lambda: weft.attempt(lambda: by_card(amount), lambda error: apologise(error.message)),
    )


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

"""Durable functions whose runs earlier versions have recorded (`journals_*.gz`). They never change: each version of
weft must enter them with all these journals. A new one is added at the end, and the journals of the next minor version
have it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import weft


@dataclass
class Payment:
    id: str
    amount: float


@weft.step(name="golden.do")
async def do(what: str) -> str:
    return f"{what} done"


@weft.step(name="golden.charge")
async def charge(order: str, amount: float) -> Payment:
    return Payment(f"payment of {order}", amount)


@weft.step(name="golden.fails", effect="none")
async def fails(what: str) -> str:
    raise ValueError(f"{what} cannot be had")


@weft.step(name="golden.after", effect="none")
async def after(seconds: float, text: str) -> str:
    await asyncio.sleep(seconds)
    return text


@weft.durable
async def golden_saga(order: str, amount: float, parts: int = 2) -> str:
    """Steps, a question, and what was done undone."""
    done: list[str] = []
    try:
        for part in range(parts):
            done.append(await do(f"reserve {order}-{part}"))
        paid = await charge(order, amount)
        done.append(paid.id)
        if (await weft.approve("Ship it?")).action != "approve":
            await fails("a courier")
        return f"{paid.amount:g} paid"
    except weft.StepFailed as error:
        for what in reversed(done):
            await do(f"undo {what}")
        return f"undone: {error.code}"


@weft.durable
async def golden_first(name: str) -> list[str]:
    """The first of a signal and a timer, a time limit, and values that are the same in each entry."""
    seen = [name]
    match await weft.first(weft.signal("confirmed", type=str), weft.sleep(days=1)):
        case weft.FirstCompleted(0, mail):
            seen.append(str(mail))
        case _:
            seen.append("late")
    try:
        async with weft.timeout(hours=1):
            seen.append(await weft.signal("more", type=str))
    except TimeoutError:
        seen.append(f"no more by {weft.now().year > 2000}")
    await do(str(weft.random().randint(1, 1_000_000)))
    await do(str(weft.uuid()))
    return seen


@weft.durable
async def golden_branches() -> list[str]:
    """Branches of several steps, of which the second is faster, and waits between them."""

    async def branch(seconds: float, name: str) -> str:
        text = await after(seconds, name)
        await weft.sleep(minutes=1)
        return await do(text)

    return list(await weft.gather(branch(0.02, "slow"), branch(0, "quick"), branch(0.01, "third")))


@weft.durable
async def golden_queue(items: int = 5) -> list[str]:
    """Workers that share a queue and a list."""
    todo: asyncio.Queue[int] = asyncio.Queue()
    done: list[str] = []
    for n in range(items):
        todo.put_nowait(n)

    async def worker(name: str) -> None:
        while not todo.empty():
            n = todo.get_nowait()
            done.append(await do(f"{n} by {name}"))
            await weft.sleep(minutes=n + 1)

    async with asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(worker(name))
    return done


@weft.durable
async def golden_marked() -> list[str]:
    """Marks, and a child run."""
    seen = [str(weft.patched("early"))]
    seen.append(await golden_child(name="Ada"))
    if weft.patched("late"):
        seen.append(await do("what is new"))
    seen.append(await weft.signal("end", type=str))
    return seen


@weft.durable
async def golden_child(name: str) -> str:
    return await do(f"greet {name}")


@weft.durable
async def golden_cancelled() -> None:
    """It sees that its run is cancelled."""
    await do("begin")
    try:
        await weft.signal("never")
    except weft.Cancelled:
        await do("undo begin")
        await weft.sleep(minutes=1)
        raise


class Refused(Exception):
    """The step declares it."""


@weft.step(name="golden.pay", effect="none", raises=(Refused,), retries=weft.Retry(2, first=3))
async def pay(order: str) -> str:
    raise Refused("no money", order)


@weft.durable
async def golden_buy(order: str) -> str:
    """A step that is tried again, and raises an exception of its own."""
    try:
        return await pay(order)
    except Refused as error:
        return f"refused: {error.args}"


@weft.durable(state=dict[str, int])
async def golden_cart() -> int:
    """A state, and updates."""
    items: dict[str, int] = {}
    while True:
        weft.state(items)
        match await weft.first(golden_add.next(), weft.sleep(days=30)):
            case weft.FirstCompleted(value=weft.Ask() as asked) if not asked.value:
                await asked.refuse("an item has a name")
            case weft.FirstCompleted(value=weft.Ask() as asked):
                items[asked.value] = items.get(asked.value, 0) + 1
                await asked.answer(items[asked.value])
            case _:
                return len(items)


@golden_cart.update
def golden_add(item: str) -> int:
    raise NotImplementedError  # only its types count


PROGRAMS = (
    golden_saga,
    golden_first,
    golden_branches,
    golden_queue,
    golden_marked,
    golden_cancelled,
    golden_buy,
    golden_cart,
)

"""Durable functions of the tests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import weft
from weft import testing

outside = testing.Outside()


@dataclass
class Payment:
    id: str
    amount: float


@weft.step
async def do(what: str) -> str:
    outside.record(what)
    return what


@weft.step
async def charge(order: str, amount: float) -> Payment:
    outside.record(f"charge {order}")
    return Payment(f"p-{order}", amount)


@weft.step(effect="none")
async def after(pause: float, text: str) -> str:
    await asyncio.sleep(pause)
    return text


@weft.step(effect="none")
async def again(text: str) -> str:
    return f"{text} again"


@weft.durable
async def saga(order: str, amount: float, parts: int = 2) -> str:
    """Reserve parts, charge, wait for the courier; undo all of it if there is none."""
    undo: list[str] = []
    try:
        for n in range(parts):
            await do(f"reserve {order}-{n}")
            undo.append(f"release {order}-{n}")
        paid = await charge(order, amount)
        undo.append(f"refund {paid.id}")
        await weft.sleep(minutes=1)
        if (await weft.approve("Did the courier take it?")).action != "approve":
            raise ValueError("no courier")
        return "sent"
    except ValueError as error:
        for what in reversed(undo):
            await do(what)
        return f"undone: {error}"


class Closed(Exception):
    pass


@weft.step(retries=weft.Retry(2, factor=100), raises=(Closed,))
async def knock(door: str) -> None:
    """Always closed: tried after a second, and after 100 more."""
    outside.record(f"knock {door}")
    raise Closed(door, 3)


@weft.step(effect="none", timeout=0.01)
async def hang() -> None:
    await asyncio.sleep(30)


@weft.durable
async def visiting() -> list[str]:
    """Knock at two doors, one after the other, then wait for something that takes too long."""
    seen: list[str] = []
    for door in ("a", "b"):
        try:
            await knock(door)
        except Closed as error:
            seen.append(f"{error.args[0]} is closed")
    try:
        await hang()
    except TimeoutError:
        seen.append("too slow")
    await weft.sleep(minutes=1)
    return seen


@weft.step(effect="none")
async def told(url: str) -> bool:
    return url.startswith("http")


@weft.durable
async def delivering() -> list[str]:
    """Two child runs, and a callback whose address a step gets."""
    home = await weft.start(signup, "home")
    async with weft.callback(title="courier", type=str) as courier:
        work = await weft.start(signup, name="work")
        assert await told(courier.url)
        seen = [await courier, await work]
    await do("delivered")
    return [*seen, await home]


@weft.durable
async def signup(name: str) -> str:
    """Wait three days for the address to be confirmed."""
    await do(f"welcome {name}")
    match await weft.first(weft.signal("confirmed", type=str), weft.sleep(days=3)):
        case weft.FirstCompleted(0, address):
            return await do(f"hello {address}")
        case _:
            return await do(f"goodbye {name}")


@weft.durable
async def branches() -> list[str]:
    """Two branches with a step after another: the second is faster."""

    async def branch(pause: float, text: str) -> str:
        return await again(await after(pause, text))

    both = await weft.gather(branch(0.03, "slow"), branch(0, "quick"))
    await weft.sleep(minutes=1)
    return list(both)


@weft.durable
async def queue(items: int = 5) -> list[str]:
    """Three workers take items from a queue, wait differently long, and share a list."""
    todo: asyncio.Queue[int] = asyncio.Queue()
    done: list[str] = []
    for n in range(items):
        todo.put_nowait(n)

    async def work(name: int, minutes: float) -> None:
        while not todo.empty():
            n = todo.get_nowait()
            await weft.sleep(minutes=minutes)
            done.append(await do(f"worker {name} did {n} as number {len(done)}"))

    async with asyncio.TaskGroup() as group:
        for name, minutes in enumerate([1, 3.5, 5.75]):
            group.create_task(work(name, minutes))
    await weft.sleep(minutes=1)
    return done


@weft.durable
async def marked() -> list[str]:
    """Calls with marks between them, one of them while steps end beside it."""

    async def branch(name: str) -> str:
        text = await again(name)
        return await again(f"new {name}") if weft.patched(name) else text

    texts = await weft.gather(branch("a"), branch("b"))
    await weft.sleep(minutes=1)
    return [*texts, str(weft.patched("end"))]

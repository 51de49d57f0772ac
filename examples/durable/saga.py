"""An order that is undone when the courier does not come, and when it is cancelled."""

from dataclasses import dataclass
from datetime import timedelta

import weft


@dataclass
class Payment:
    id: str
    amount: float


@weft.step
async def reserve(part: str) -> None:
    print(f"reserve {part}")


@weft.step(retries=2, timeout=10)
async def charge(order: str, amount: float) -> Payment:
    print(f"charge {amount:g} for {order}")
    return Payment(f"payment-{order}", amount)


@weft.step
async def undo(what: str) -> None:
    print(f"undo {what}")


@weft.durable(undo=timedelta(days=1))
async def order(order: str, amount: float, parts: int = 2) -> str:
    done: list[str] = []
    try:
        for part in range(parts):
            await reserve(f"{order}-{part}")
            done.append(f"{order}-{part}")
        done.append((await charge(order, amount)).id)
        if (await weft.approve("Did the courier take it?", days=2)).action != "approve":
            raise LookupError("no courier")
        return "sent"
    except (weft.Cancelled, TimeoutError, LookupError):
        for what in reversed(done):
            await undo(what)
        raise

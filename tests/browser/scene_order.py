"""The durable function of the pictures: an order that is charged, packed in branches, and waits for its courier."""

import weft


@weft.step(effect="read")
async def look_up(order: str) -> dict[str, str]:
    return {"customer": "Jo Lindqvist", "address": "12 Mill Lane, Leeds", "order": order}


@weft.step(retries=3)
async def charge(order: str, amount: float) -> str:
    return f"payment of {order}"


@weft.step
async def insure(order: str, amount: float) -> str:
    raise ValueError(f"no insurer takes {amount:g} for {order}")


@weft.step
async def pack(part: int) -> str:
    return f"box {part}"


@weft.step
async def label(box: str, address: str) -> str:
    return f"{box} to {address}"


@weft.step
async def refund(payment: str) -> None: ...


async def pack_and_label(part: int, address: str) -> str:
    return await label(await pack(part), address)


@weft.durable
async def order(order: str, amount: float = 42.5, parts: int = 3) -> str:
    """Charge, pack, wait for the courier, and ask whether it arrived."""
    found = await look_up(order)
    with weft.group("pay"):
        paid = await charge(order, amount)
        try:
            await insure(order, amount)
        except weft.StepFailed:
            print("it goes without")
    with weft.group("ship", parts=parts):
        boxes = await weft.gather(
            *(pack_and_label(part, found["address"]) for part in range(parts)),
        )
        match await weft.first(
            weft.signal("courier", type=str),
            weft.sleep(days=3),
        ):
            case weft.FirstCompleted(0, courier):
                sent = f"{len(boxes)} boxes sent with {courier}"
            case _:
                await refund(paid)
                raise LookupError("no courier came")
    answer = await weft.approve(f"Did order {order} arrive?", text=sent)
    return f"{answer.action}: {sent}"

"""A signup that waits for "confirmed", or three days."""

import weft


@weft.step
async def mail(to: str, text: str) -> None:
    print(f"to {to}: {text}")


@weft.durable
async def signup(name: str) -> str:
    await mail(name, "please confirm")
    match await weft.first(weft.signal("confirmed", name, type=str), weft.sleep(days=3)):
        case weft.FirstCompleted(0, address):
            await mail(name, f"welcome, {address}")
            return "confirmed"
        case _:
            return "expired"

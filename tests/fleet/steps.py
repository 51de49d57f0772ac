"""A function for a worker's `WEFT_FUNCTIONS`. What it has done is in a file before it returns."""

from __future__ import annotations

import os

from executor.kernel.handler.base import StepContext


def step(file: str, n: int, ctx: StepContext) -> dict[str, int]:
    note = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(note, f"{ctx.idempotency_key}\n".encode())
    finally:
        os.close(note)
    return {"n": n + 1}

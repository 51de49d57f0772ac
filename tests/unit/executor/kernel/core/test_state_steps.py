"""The memory of a step in the state of its run: a durable function may have 100,000."""

from __future__ import annotations

import gc
import tracemalloc
from hashlib import sha256

import orjson
from msgspec import convert

from executor.kernel.core import events as e
from executor.kernel.core.state import Tries

STEPS = 10_000
BYTES_MAX = 400  # docs/reference/limits.md


def read_from_disk(n: int) -> e.StepStarted:
    hash = sha256(str(n).encode()).hexdigest()[:32]
    given = {"n": n, "kind": "step", "name": "shop.orders.charge", "input_hash": hash, "effect": "write"}
    return convert({**orjson.loads(orjson.dumps(given)), "key": ((), 1), "attempt": 1}, e.StepStarted, strict=False)


def test_a_step_that_has_ended_takes_few_bytes() -> None:
    gc.collect()
    tracemalloc.start()
    tries = Tries()
    for n in range(1, STEPS + 1):
        tries.started(read_from_disk(n), 1_000 + 2 * n)
        tries.finished(n, failed=False, seq=1_001 + 2 * n)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tries.by_n) == STEPS and held / STEPS <= BYTES_MAX, f"{held / STEPS:.0f} bytes"

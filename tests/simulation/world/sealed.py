"""A world without anything from outside: what is random is the seed's, what the product logs is heard, and some of its
bounds are drawn so small that they are met."""

from __future__ import annotations

import logging
import math
import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from executor.kernel.journal import reader
from executor.kernel.read import cursor
from executor.kernel.run import ahead, loop, new_run, recorder
from executor.kernel.values import payload, schema
from executor.service.views import run as slices
from tests.support.snapshots import often

_recorder: Any = recorder  # which has a name of its own for the bound of payload


class Loud(logging.Handler):
    """What is logged with a traceback is a bug of ours: see Worker and Launcher."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.complain: Callable[[str], None] = lambda what: None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.complain(f"the log has a traceback: {record.getMessage()}: {record.exc_info[1]!r}")


@contextmanager
def sealed(seed: int) -> Iterator[tuple[dict[str, int], Loud]]:
    """Nothing from outside comes in: random ids are the seed's, and no code looks at real time, of which a busy machine
    needs more. Bounds are drawn small, so that they are met."""
    rng = Random(f"world {seed} sealed")
    tunables = {
        "inline_max_bytes": rng.choice((300, 256 * 1024)),
        "inline_batch_max": rng.choice((2, 256)),
        "pages": rng.choice((3, 1_000)),
        "reader_page": rng.choice((4, 1_000)),
        "snapshots": Random(f"world {seed} snapshots").choice((1, 3, 20, 5_000)),
    }
    ahead_rng = Random(f"world {seed} ahead")
    tunables |= {"ahead_max": ahead_rng.choice((4, 8, 64)), "ahead_ms": ahead_rng.choice((10, 400))}
    tunables["slice_ms"] = Random(f"world {seed} slices").choice((0, 5))
    before = (
        secrets.token_hex, payload.INLINE_MAX_BYTES, _recorder.INLINE_MAX_BYTES, loop.INLINE_BATCH_MAX, cursor.PAGE,
        reader.PAGE, schema.CHECK_S_MAX, new_run.random_bytes, ahead.TURNS_MAX, ahead.HOLD_S,
        slices.SLICE_S,
    )  # fmt: skip
    state = random.getstate()
    log = logging.getLogger("weft")
    handler, propagate = Loud(), log.propagate
    try:
        random.seed(seed)
        secrets.token_hex = lambda nbytes=None: f"{rng.getrandbits(8 * (nbytes or 32)):0{2 * (nbytes or 32)}x}"
        new_run._drawn.clear()
        new_run.random_bytes = rng.randbytes
        payload.INLINE_MAX_BYTES = _recorder.INLINE_MAX_BYTES = tunables["inline_max_bytes"]  # type: ignore[misc]  # Final
        loop.INLINE_BATCH_MAX = tunables["inline_batch_max"]
        ahead.TURNS_MAX, ahead.HOLD_S = tunables["ahead_max"], tunables["ahead_ms"] / 1000
        slices.SLICE_S = tunables["slice_ms"] / 1000  # type: ignore[misc]
        cursor.PAGE = tunables["pages"]
        reader.PAGE = tunables["reader_page"]
        schema.CHECK_S_MAX = math.inf  # type: ignore[misc]
        log.addHandler(handler)
        log.propagate = False
        with often(tunables["snapshots"]):
            yield tunables, handler
    finally:
        log.removeHandler(handler)
        log.propagate = propagate
        random.setstate(state)
        new_run._drawn.clear()
        (  # type: ignore[misc]
            secrets.token_hex, payload.INLINE_MAX_BYTES, _recorder.INLINE_MAX_BYTES, loop.INLINE_BATCH_MAX, cursor.PAGE,
            reader.PAGE, schema.CHECK_S_MAX, new_run.random_bytes, ahead.TURNS_MAX, ahead.HOLD_S,
            slices.SLICE_S,
        ) = before  # fmt: skip

"""Back-off between attempts. Jitter comes from a hash, so that a replay computes the same times."""

from __future__ import annotations

import hashlib

from compiler.keys import NodeKey
from compiler.plan import Retry

# An attempt that does not count may be repeated so often, and wait so long in all; then it counts like any other.
DEFERRED_MAX = 100
DEFERRED_TOTAL_MS = 24 * 3600 * 1000
# "Come back in 0 seconds" is no reason to ask again and again without a pause.
DEFERRED_PAUSE_MIN_MS = 1_000


def deferred_pause_ms(asked_ms: int | None, back_off_ms: int, times: int, waited_ms: int) -> int | None:
    """How long an attempt waits that does not count; None: it counts. `asked_ms`: what the other side wants; `times`,
    `waited_ms`: what the node has had of it."""
    pause_ms = back_off_ms if asked_ms is None else max(asked_ms, DEFERRED_PAUSE_MIN_MS)
    return None if times >= DEFERRED_MAX or waited_ms + pause_ms > DEFERRED_TOTAL_MS else pause_ms


def delay_ms(retry: Retry, run: str, key: NodeKey, attempt: int) -> int:
    """Milliseconds to wait after attempt number `attempt` (1 is the first) has failed."""
    steps = attempt - 1
    match retry.backoff:
        case "fixed":
            base = float(retry.initial_ms)
        case "linear":
            base = retry.initial_ms * (1.0 + steps)
        case "exponential":
            # 64 doublings overflow nothing and are far over every cap
            base = retry.initial_ms * retry.factor ** min(steps, 64)
    base = min(base, float(retry.max_ms))
    spread = retry.jitter * (2.0 * _unit(run, key, attempt) - 1.0)
    return max(0, int(base * (1.0 + spread)))


def _unit(run: str, key: NodeKey, attempt: int) -> float:
    """A number in [0, 1) that depends only on its arguments."""
    digest = hashlib.blake2b(repr((run, key, attempt)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64

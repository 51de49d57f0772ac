"""Short forms of the sandbox's calls."""

from typing import Any

from executor.sandbox import Bound, Limits
from executor.sandbox.sandbox import Sandbox

NOW_MS = 1_700_000_000_123

# For what comes to its end by itself: a busy machine may stop a thread for longer than the usual limits allow.
PATIENT = Limits(expression_soft_ms=30_000, expression_hard_ms=40_000)


async def evaluate(sandbox: Sandbox, source: str, seed: str = "seed", **values: Any) -> Any:
    return (await sandbox.evaluate([Bound(source, values)], now_ms=NOW_MS, seed=seed))[0]


async def program(sandbox: Sandbox, source: str, timeout_ms: int = 30_000, **values: Any) -> tuple[Any, str]:
    return await sandbox.run_code(Bound(source, values), now_ms=NOW_MS, seed="seed", timeout_ms=timeout_ms)

"""Short forms of the sandbox's calls."""

from typing import Any

from executor.blocks.base import Bound
from executor.sandbox import Sandbox

NOW_MS = 1_700_000_000_123


async def evaluate(sandbox: Sandbox, source: str, seed: str = "seed", **values: Any) -> Any:
    return (await sandbox.evaluate([Bound(source, values)], now_ms=NOW_MS, seed=seed))[0]


async def program(sandbox: Sandbox, source: str, timeout_ms: int = 1000, **values: Any) -> tuple[Any, str]:
    return await sandbox.run_code(Bound(source, values), now_ms=NOW_MS, seed="seed", timeout_ms=timeout_ms)

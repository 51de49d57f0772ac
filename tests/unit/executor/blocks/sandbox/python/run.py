from typing import Any

from executor.blocks.sandbox.sandbox import Sandbox
from executor.kernel.values.payload import Bound

NOW_MS = 1_700_000_000_123


async def program(sandbox: Sandbox, source: str, timeout_ms: int = 30_000, **values: Any) -> tuple[Any, str]:
    bound = Bound(source, values, {name: str(value) for name, value in values.items()})
    return await sandbox.run_code(bound, now_ms=NOW_MS, seed="seed", timeout_ms=timeout_ms, language="python")

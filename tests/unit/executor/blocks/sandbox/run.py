"""Short forms of the sandbox's calls, and a sandbox whose programs run in a child process."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from msgspec import Raw, json

from executor.blocks.runners.call import Call
from executor.blocks.runners.process import ProcessRunner
from executor.blocks.sandbox import Limits
from executor.blocks.sandbox.exchange import PLACE
from executor.blocks.sandbox.sandbox import Sandbox
from executor.kernel.values.payload import Bound
from tests.unit.executor.blocks.runners.listener import Listener

NOW_MS = 1_700_000_000_123

# For what comes to its end by itself: a busy machine may stop a thread for longer than the usual limits allow.
PATIENT = Limits(expression_soft_ms=30_000, expression_hard_ms=40_000)


async def evaluate(sandbox: Sandbox, source: str, seed: str = "seed", **values: Any) -> Any:
    return (await sandbox.evaluate([Bound(source, values)], now_ms=NOW_MS, seed=seed))[0]


async def program(sandbox: Sandbox, source: str, timeout_ms: int = 30_000, **values: Any) -> tuple[Any, str]:
    return await sandbox.run_code(Bound(source, values), now_ms=NOW_MS, seed="seed", timeout_ms=timeout_ms)


class Apart(Sandbox):
    """The child is that of one loop, in a thread, whichever loops the tests have."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._runner = ProcessRunner(1)

    async def run_code(self, code: Bound, **more: Any) -> tuple[Any, str]:
        return await super().run_code(code, **more, elsewhere=self._elsewhere)

    async def _elsewhere(self, arguments: Mapping[str, Any]) -> Any:
        call = Call(PLACE, "JavaScript", Raw(json.encode(arguments)), "run:f", 1)
        calling = self._runner.call(call, Listener())
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(calling, self._loop))

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        super().close()

"""The runners of a process, each made when it is used first."""

from __future__ import annotations

from executor.blocks.runners.call import Runner
from executor.blocks.runners.dask import DaskRunner
from executor.blocks.runners.process import ProcessRunner
from executor.errors import BlockError


class Runners:
    """The runners of a process. `processes`: child processes at the same time; None for one a core. `dask`: the address
    of the scheduler of a cluster."""

    def __init__(self, *, processes: int | None = None, dask: str | None = None) -> None:
        self._processes = processes
        self._dask = dask
        self._made: dict[str, Runner] = {}

    def get(self, name: str) -> Runner:
        runner = self._made.get(name)
        if runner is None:
            runner = self._made[name] = self._make(name)
        return runner

    async def close(self) -> None:
        for runner in self._made.values():
            await runner.close()

    def _make(self, name: str) -> Runner:
        if name == "process":
            return ProcessRunner(self._processes)
        if name == "dask" and self._dask is not None:
            return DaskRunner(self._dask)
        raise BlockError(
            f"there is no runner {name!r} here",
            code="runner_unavailable",
            retryable=False,
            hint="set WEFT_DASK to the address of a scheduler, such as tcp://10.0.0.5:8786" if name == "dask" else "",
        )

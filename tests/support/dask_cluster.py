"""A Dask cluster of this machine, in processes of its own: a scheduler and workers on loopback, one thread each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
WITHIN_S = 60
# As docs/howto/heavy-python.md recommends: by default each process looks at itself 150 times a second.
CALM = {"DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s", "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false"}


class DaskCluster:
    """`with DaskCluster(2) as cluster`: `cluster.address`. Workers come in when they are ready. `port`: of one that was
    killed, in whose place this one comes."""

    def __init__(self, workers: int = 2, port: int = 0) -> None:
        self._count = workers
        self._port = str(port)
        self._folder = tempfile.TemporaryDirectory(prefix="weft-dask-")
        self._file = Path(self._folder.name) / "scheduler.json"
        self._workers: list[subprocess.Popen[bytes]] = []
        self._computed_s = 0.0  # by workers that were killed

    def __enter__(self) -> Self:
        self._scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", self._port, "--no-dashboard")
        until = time.monotonic() + WITHIN_S
        while not self._file.exists() or not self._file.read_text():
            assert time.monotonic() < until and self._scheduler.poll() is None
            time.sleep(0.02)
        self.address: str = json.loads(self._file.read_text())["address"]
        for _ in range(self._count):
            self._add_worker()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._folder.cleanup()

    def kill_worker(self) -> None:
        """The oldest, by SIGKILL. Another one takes its place."""
        oldest = self._workers.pop(0)
        self._computed_s += computed_s(oldest.pid)
        oldest.kill()
        oldest.wait()
        self._add_worker()

    def kill(self) -> None:
        """The scheduler and all workers."""
        for process in [self._scheduler, *self._workers]:
            process.kill()
            process.wait()

    def _add_worker(self) -> None:
        alone = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "0", "--host", "127.0.0.1")
        self._workers.append(self._start("worker", *alone, "--local-directory", self._folder.name))

    def computed_s(self) -> tuple[float, float]:
        """Seconds of processor time: of the scheduler, and of all workers, also of those that were killed."""
        workers = sum(computed_s(worker.pid) for worker in self._workers)
        return computed_s(self._scheduler.pid), self._computed_s + workers

    def _start(self, part: str, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.dask_{part}"]
        env = os.environ | CALM | {"PYTHONPATH": str(ROOT), "DASK_LOGGING__DISTRIBUTED": "critical"}
        return subprocess.Popen(
            [*command, "--scheduler-file", str(self._file), *more],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=env,
        )


def computed_s(pid: int) -> float:
    """Seconds of processor time of a process."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

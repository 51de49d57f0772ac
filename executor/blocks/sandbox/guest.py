"""A text in, a text out, within time and memory, and nothing kept.

Every call starts by restoring the memory image that was taken after the prelude ran, so nothing survives from one call
to the next, whatever the last one did. WebAssembly memory cannot shrink: an instance that grew is thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import wasmtime

from executor.blocks.sandbox import GuestStopped, Reason
from executor.blocks.sandbox.engine import ticker, ticks
from executor.blocks.sandbox.instance import Image, Imports, Instance, guest_image, wide_image
from executor.blocks.sandbox.prelude import GLOBALS

_PENDING, _TIMER, _JOBS = b"P", b"T", b"J"  # instead of a result
_JOBS_AT_A_TIME = 100_000  # by the guest


class Guest:
    """Not thread-safe: one thread at a time, any thread."""

    def __init__(self, *, memory_bytes: int, output_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._output_bytes = output_bytes
        self._imports = Imports()
        self._instances: dict[bool, Instance] = {}  # one for each of the two images

    def call(
        self,
        request: bytes,
        *,
        now_ms: int,
        soft_ms: int,
        hard_ms: int,
        jobs: bool = False,
        should_stop: Callable[[], bool] | None = None,
    ) -> bytes:
        """Give `request` to the prelude's `run` -> its answer; with `jobs`, run the promise jobs -> `finish`'s answer.
        `should_stop` is called every few thousand byte codes and must not raise. Raises GuestStopped."""
        host, wide = self._imports, any(name in request for name in GLOBALS)
        image = wide_image() if wide else guest_image()
        host.now_ms, host.should_stop, host.interrupted = now_ms, should_stop, False
        instance = self._instances.get(wide)
        if instance is None:
            instance = self._instances[wide] = Instance(host, memory_bytes=self._memory_bytes)
        with ticker().running():
            instance.restore(image)
            host.soft_at = time.monotonic() + soft_ms / 1000
            instance.store.set_epoch_deadline(ticks(hard_ms))
            try:
                answer = self._enter(instance, image, "run", request)
                if jobs and answer.startswith(b"O"):
                    answer = self._finish(instance, image, now_ms, soft_ms)
            except wasmtime.Trap as trap:
                raise GuestStopped(_reason(trap.trap_code)) from None
            finally:
                if instance.memory_bytes > image.size:
                    self._instances.pop(wide).close()
        if host.interrupted:  # a program may catch the interruption of a promise job and go on: that is no result
            raise self._interruption()
        return answer

    def close(self) -> None:
        for instance in self._instances.values():
            instance.close()
        self._instances.clear()
        self._imports.close()

    def _finish(self, instance: Instance, image: Image, now_ms: int, soft_ms: int) -> bytes:
        """Run promise jobs, a number of them at a time, and timers until the program has a result or nothing can bring
        one. A timer is called as soon as there are no jobs, and the clock of the program is moved to its time: waiting
        takes no time, and a timer after the end of the program's time is never called."""
        host, due = self._imports, b""
        while True:
            ran = instance.export("execute_pending_jobs") if not due else 0
            answer = self._enter(instance, image, "finish", due)
            due = b""
            if answer.startswith((b"O", b"E")) or host.interrupt():
                return answer
            if answer.startswith(_JOBS) or ran >= _JOBS_AT_A_TIME:
                continue
            if answer.startswith(_PENDING):
                return answer.removeprefix(_PENDING)
            due = answer.removeprefix(_TIMER)
            passed_ms = int(due)
            if passed_ms > soft_ms:
                raise GuestStopped("timeout")
            host.now_ms = now_ms + passed_ms

    def _enter(self, instance: Instance, image: Image, function: Literal["run", "finish"], text: bytes) -> bytes:
        answer = instance.call(function, image, text)
        if answer is None:  # the prelude catches everything but an interruption, and running out of memory in a `catch`
            raise self._interruption() if self._imports.interrupted else GuestStopped("memory")
        if answer[1] > self._output_bytes:
            raise GuestStopped("output")
        return instance.read(*answer)

    def _interruption(self) -> GuestStopped:
        return GuestStopped("stopped" if self._imports.stop_asked else "timeout")


def _reason(code: wasmtime.TrapCode | None) -> Reason:
    match code:
        case wasmtime.TrapCode.INTERRUPT:
            return "timeout"
        case wasmtime.TrapCode.STACK_OVERFLOW | wasmtime.TrapCode.MEMORY_OUT_OF_BOUNDS:
            return "stack"  # the guest's own stack begins at address 0 and grows down, out of bounds
        case _:
            return "memory"  # an allocation that failed where the engine cannot throw: it aborts

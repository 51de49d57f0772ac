"""One call of the Python guest: a text in, a text out, within time and memory, and nothing kept.

Each call has an instance of its own (0.6 ms): its memory begins as a copy on write of the component's image, so nothing
survives a call. The component imports nothing: no host call can block, so the epoch deadline stops whatever runs.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from wasmtime import _ffi as ffi  # the callback of an epoch deadline has no wrapper in wasmtime 50
from wasmtime.component import Linker

from executor.blocks.sandbox import GuestStopped, Reason
from executor.blocks.sandbox.engine import engine, once, ticker, ticks
from executor.blocks.sandbox.python.component import component
from executor.blocks.sandbox.wasm import wasmtime  # isort: split - its error comes first

_LOOK_TICKS = 4  # the interval at which a call checks if its caller has gone
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.POINTER(ffi.wasmtime_context_t),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint8),
)
_NO_FINALIZER = ctypes.cast(0, ctypes.CFUNCTYPE(None, ctypes.c_void_p))
_CONTINUE = 0


class PythonGuest:
    """Holds nothing between calls. Any thread."""

    def __init__(self, *, memory_bytes: int, output_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._output_bytes = output_bytes

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
        """Return the answer of `run` in `program/`, as Guest.call does; the time ends with `soft_ms`. Raises
        GuestStopped, SandboxError(python_missing)."""
        text, linker, program = request.decode(), _linker(), component()
        store = wasmtime.Store(engine())
        watch = _Watch(soft_ms, should_stop)
        try:
            with ticker().running():
                store.set_limits(memory_size=self._memory_bytes)
                watch.over(store)
                run = linker.instantiate(store, program).get_func(store, "run")
                assert run is not None, "the world of the component has `run`"
                answer: str = run(store, text)
        except wasmtime.WasmtimeError as error:
            raise GuestStopped(watch.reason or _reason(str(error))) from None
        finally:
            store.close()
        encoded = answer.encode("utf-8", "surrogatepass")
        if len(encoded) > self._output_bytes:
            raise GuestStopped("output")
        return encoded


class _Watch:
    """Stops the call of one store: at its deadline, or when its caller has gone."""

    def __init__(self, soft_ms: int, should_stop: Callable[[], bool] | None) -> None:
        self.reason: Reason | None = None
        self._left = ticks(soft_ms)
        self._ends = time.monotonic() + soft_ms / 1000
        self._should_stop = should_stop
        self._callback = _CALLBACK(self._tick)  # referenced as long as the store may call it

    def over(self, store: wasmtime.Store) -> None:
        ffi.wasmtime_store_epoch_deadline_callback(store.ptr(), self._callback, None, _NO_FINALIZER)
        store.set_epoch_deadline(self._next())

    def _next(self) -> int:
        step = min(self._left, _LOOK_TICKS)
        self._left -= step
        return step

    def _tick(self, context: Any, data: Any, delta: Any, kind: Any) -> int:
        """Return 0 to continue for so many ticks, else a pointer to an error, which wasmtime frees. Must not raise."""
        if self._should_stop is not None and self._should_stop():
            self.reason = "stopped"
        elif self._left <= 0 and time.monotonic() >= self._ends:
            self.reason = "timeout"
        else:
            delta[0] = self._next() or 1
            kind[0] = _CONTINUE
            return 0
        return ctypes.cast(wasmtime.WasmtimeError(self.reason)._consume(), ctypes.c_void_p).value or 0


@once
def _linker() -> Linker:
    """A linker without any import: the stubs are inside the component."""
    return Linker(engine())


def _reason(trap: str) -> Reason:
    """Return the reason of a trap from wasmtime's message: a trap of a component has no code."""
    if "call stack exhausted" in trap or "out of bounds memory access" in trap:
        return "stack"
    return "refused"  # a stub, or an abort where CPython could not raise MemoryError

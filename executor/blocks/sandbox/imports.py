"""The host functions of the guest: the time it is to see, and whether to stop. All others do nothing or fail.

The guest imports 13 functions. Ours give it a frozen clock, constant "randomness" (the prelude seeds Math.random), no
files, no environment, no host calls and no modules. None of them may raise: wasmtime keeps the last Python exception of
a callback in one global variable, which two threads would mix up.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any, cast

import wasmtime

from executor.blocks.sandbox.artifact import guest_module
from executor.blocks.sandbox.engine import engine

_ERRNO_BADF, _ERRNO_INVAL = 8, 28


class Imports:
    """The imports of one guest. Set the fields before a call; `interrupted` afterwards: the host has stopped it."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.soft_at = float("inf")  # time.monotonic()
        self.should_stop: Callable[[], bool] | None = None
        self.interrupted = False
        self.linker = self._link()

    def close(self) -> None:
        """Break the cycle linker -> callbacks -> self, which no garbage collector sees."""
        self.linker.close()

    @property
    def stop_asked(self) -> bool:
        return self.should_stop is not None and self.should_stop()

    def interrupt(self) -> int:
        """Return 1 when the time of the call is over or its caller has gone."""
        if time.monotonic() > self.soft_at or self.stop_asked:
            self.interrupted = True
            return 1
        return 0

    def _clock(self, caller: wasmtime.Caller, clock: int, precision: int, address: int) -> int:
        return _poke(caller, address, struct.pack("<Q", self.now_ms * 1_000_000 & 0xFFFFFFFFFFFFFFFF))

    def _environment(self, caller: wasmtime.Caller, count: int, size: int) -> int:
        return _poke(caller, count, bytes(4)) or _poke(caller, size, bytes(4))

    def _link(self) -> wasmtime.Linker:
        linker = wasmtime.Linker(engine())
        plain: dict[str, Callable[..., Any]] = {
            "host_interrupt": self.interrupt,
            "host_call": lambda *_: -1,
            "host_module_normalize": lambda *_: 0,
            "host_module_load": lambda *_: 0,
            "random_get": lambda *_: 0,  # leaves the bytes that are there
            "environ_get": lambda *_: 0,
            "proc_exit": lambda *_: None,  # the guest's next instruction is `unreachable`
        }
        with_memory: dict[str, Callable[..., Any]] = {
            "clock_time_get": self._clock,
            "environ_sizes_get": self._environment,
        }
        for item in guest_module().imports:
            name = item.name or ""
            kind = cast(wasmtime.FuncType, item.type)
            if name in with_memory:
                linker.define_func(item.module, name, kind, with_memory[name], access_caller=True)
            else:
                linker.define_func(item.module, name, kind, plain.get(name, lambda *_: _ERRNO_BADF))
        return linker


def _poke(caller: wasmtime.Caller, address: int, data: bytes) -> int:
    try:
        cast(wasmtime.Memory, caller["memory"]).write(caller, data, address & 0xFFFFFFFF)
    except (IndexError, KeyError):
        return _ERRNO_INVAL
    return 0

"""A text in, a text out, within time and memory, and nothing kept.

Every call starts by restoring the memory image that was taken after the prelude ran, so nothing survives from one call
to the next, whatever the last one did. WebAssembly memory cannot shrink: an instance that grew is thrown away.

The ABI of the guest (package `quickjs-rs`, 0.2): texts go in by address and length, values are handles (i32), functions
return a status and write their result to an address, `get_string` leaves its text at `qjs_last_ptr`, `qjs_last_len`.

The guest imports 13 functions. Ours give it a frozen clock, constant "randomness" (the prelude seeds Math.random), no
files, no environment, no host calls and no modules. None of them may raise: wasmtime keeps the last Python exception of
a callback in one global variable, which two threads would mix up.
"""

from __future__ import annotations

import ctypes
import json
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import groupby
from typing import Any, Final, Literal, cast

from executor.blocks.sandbox import GuestStopped, Reason
from executor.blocks.sandbox.engine import engine, guest_module, once, ticker, ticks
from executor.blocks.sandbox.wasm import wasmtime

_ERRNO_BADF, _ERRNO_INVAL = 8, 28
# The globals of each file of `javascript/`.
_FILES: Final = {
    "url": ("URL", "URLSearchParams"),
    "text": ("TextEncoder", "TextDecoder"),
    "crypto": ("crypto",),
    "clone": ("structuredClone",),
    "dates": ("dates",),
}
GLOBALS: Final = tuple(name.encode() for names in _FILES.values() for name in names)


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


_PAGE = 65536
_TEXT = 64 * 1024  # requests up to this size need no allocation
_SLACK = 256 * 1024  # free heap inside the image, so that ordinary calls do not grow the memory
_BUILD_MS = 10_000

# One crossing without arguments instead of five with: wasmtime's Python wrapper takes 14 us for a call and 5 us for
# each argument. Arguments and results are in `box`: text address, text length, argument handle, result handle, answer
# address, answer length (u32 each), then the text itself if it is short. The guest's own exports do the work.
_BOX = struct.Struct("<6I")


@dataclass(frozen=True, slots=True)
class Image:
    """Memory after the prelude ran, and where things are in it. Good for every instance of the guest module.

    `size` is in bytes; `parts` cover all of it: (address, length, content), None for zeros, which are cheap to restore.
    """

    size: int
    parts: tuple[tuple[int, int, bytearray | None], ...]
    stack_pointer: int
    run: int
    finish: int
    box: int


class Instance:
    """A store with one guest in it. `restore` before use; `close` frees its memory at once."""

    def __init__(self, imports: Imports, *, memory_bytes: int) -> None:
        self.store = wasmtime.Store(engine())
        self.store.set_limits(memory_size=memory_bytes, instances=2, memories=1, tables=1)
        self.store.set_epoch_deadline(ticks(_BUILD_MS))
        self._exports = imports.linker.instantiate(self.store, guest_module()).exports(self.store)
        self._memory = cast(wasmtime.Memory, self._exports["memory"])
        self._stack_pointer = cast(wasmtime.Global, self._exports["__stack_pointer"])
        self._adapter: dict[str, wasmtime.Func] = {}

    def close(self) -> None:
        self.store.close()

    @property
    def memory_bytes(self) -> int:
        return self._memory.data_len(self.store)

    def restore(self, image: Image) -> None:
        """Restore every byte from `image`. An instance that has grown since must not be restored."""
        if not self._adapter:
            self._adapt(image)
        for address, length, content in image.parts:
            if content is None:
                ctypes.memset(self._memory.get_buffer_ptr(self.store, length, address), 0, length)
            else:
                self._memory.write(self.store, content, address)

    def call(self, function: Literal["run", "finish"], image: Image, text: bytes) -> tuple[int, int] | None:
        """Call a prelude function with a text -> (address, length) of the text it returns; None when it threw."""
        size = len(text)
        if size <= _TEXT:
            address = image.box + _BOX.size
            self._memory.write(self.store, _BOX.pack(address, size, 0, 0, 0, 0) + text, image.box)
        else:
            self._stack_pointer.set_value(self.store, image.stack_pointer)  # a trap leaves it anywhere
            address = self.export("qjs_alloc", size) & 0xFFFFFFFF
            if address == 0:
                return None
            self._memory.write(self.store, text, address)
            self._memory.write(self.store, _BOX.pack(address, size, 0, 0, 0, 0), image.box)
        if self._adapter[function](self.store):
            return None
        answer = _BOX.unpack(self.read(image.box, _BOX.size))
        return answer[4], answer[5]

    def export(self, name: str, *arguments: int) -> Any:
        return cast(wasmtime.Func, self._exports[name])(self.store, *arguments)

    def read(self, address: int, length: int) -> bytes:
        return bytes(self._memory.read(self.store, address, address + length))

    def snapshot(self, program: str) -> Image:
        slots = self.export("qjs_alloc", 16)
        source = program.encode()
        address = self.export("qjs_alloc", len(source))
        self._memory.write(self.store, source, address)
        pair = self._result("eval_code", slots, address, len(source))
        self._memory.write(self.store, bytes(len(source)), address)  # zeros are cheap to restore
        self.export("qjs_free", address, len(source))
        run, finish = (self._result("get_index", slots, pair, index) for index in (0, 1))
        box = self.export("qjs_alloc", _BOX.size + _TEXT)
        self.export("qjs_free", self.export("qjs_alloc", _SLACK), _SLACK)
        memory = bytes(self._memory.read(self.store))
        return Image(
            size=len(memory),
            parts=tuple(_parts(memory)),
            stack_pointer=int(self._stack_pointer.value(self.store)),
            run=run,
            finish=finish,
            box=box,
        )

    def _adapt(self, image: Image) -> None:
        missing = image.size - self.memory_bytes
        if missing > 0:
            self._memory.grow(self.store, -(-missing // _PAGE))
        module = _adapter()
        wanted = [self._exports[item.name or ""] for item in module.imports]
        exports = wasmtime.Instance(self.store, module, wanted).exports(self.store)
        self._adapter = {name: cast(wasmtime.Func, exports[name]) for name in ("setup", "run", "finish")}
        self._adapter["setup"](self.store, image.stack_pointer, image.run, image.finish, image.box)

    def _result(self, name: str, slots: int, *arguments: int) -> int:
        status = self.export(name, *arguments, slots)
        assert status == 0, f"the guest refuses the prelude: {name} gives status {status}"
        return int(struct.unpack("<i", self.read(slots, 4))[0])


def _parts(memory: bytes) -> Iterator[tuple[int, int, bytearray | None]]:
    zero = bytes(_PAGE)
    pages = range(0, len(memory), _PAGE)
    for is_zero, run in groupby(pages, lambda start: memory[start : start + _PAGE] == zero):
        addresses = list(run)
        start, stop = addresses[0], addresses[-1] + _PAGE
        yield start, stop - start, None if is_zero else bytearray(memory[start:stop])


def _built(*, wide: bool) -> Image:
    imports = Imports()
    with ticker().running():
        instance = Instance(imports, memory_bytes=32 << 20)
        try:
            return instance.snapshot(_prelude(wide=wide))
        finally:
            instance.close()
            imports.close()


def _prelude(*, wide: bool) -> str:
    lines: list[str] = []
    for file, names in _FILES.items():
        text = _source(f"{file}.js")
        text = "\n".join(line.strip() for line in text.splitlines() if not line.lstrip().startswith("//"))
        lines.append(f"const make_{file} = {text if wide else json.dumps(text)};")
        lines += [f"offer('{name}', make_{file});" for name in names]
    return _source("prelude.js").replace("$OFFERS", "\n".join(lines))


def _source(name: str) -> str:
    return files(__package__).joinpath("javascript", name).read_text(encoding="ascii")


guest_image = once(partial(_built, wide=False))  # 5 ms, once per process
wide_image = once(partial(_built, wide=True))  # with the globals of `javascript/` compiled: 30 ms


@once
def _adapter() -> wasmtime.Module:
    return wasmtime.Module(
        engine(), files(__package__).joinpath("javascript", "adapter.wat").read_text(encoding="ascii")
    )


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
        """Run promise jobs and timers until the program has a result or nothing can bring one. A timer is called as
        soon as there are no jobs, and the clock of the program is moved to its time: waiting takes no time."""
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

"""One WebAssembly instance of the guest, and the memory image every instance starts from.

The ABI of the guest (package `quickjs-rs`, 0.2): texts go in by address and length, values are handles (i32), functions
return a status and write their result to an address, `get_string` leaves its text at `qjs_last_ptr`, `qjs_last_len`.

The host functions of the guest: the time it is to see, and whether to stop. All others do nothing or fail.

The guest imports 13 functions. Ours give it a frozen clock, constant "randomness" (the prelude seeds Math.random), no
files, no environment, no host calls and no modules. None of them may raise: wasmtime keeps the last Python exception of
a callback in one global variable, which two threads would mix up.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, cast

import wasmtime

from executor.blocks.sandbox.engine import engine, guest_module, once, ticker, ticks
from executor.blocks.sandbox.prelude import prelude

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


_PAGE = 65536
_TEXT = 64 * 1024  # requests up to this size need no allocation
_SLACK = 256 * 1024  # free heap inside the image, so that ordinary calls do not grow the memory
_BUILD_MS = 10_000

# One crossing without arguments instead of five with: wasmtime's Python wrapper takes 14 us for a call and 5 us for
# each argument. Arguments and results are in `box`: text address, text length, argument handle, result handle, answer
# address, answer length (u32 each), then the text itself if it is short. The guest's own exports do the work.
_BOX = struct.Struct("<6I")
_ADAPTER = """
(module
  (import "guest" "memory" (memory 1))
  (import "guest" "__stack_pointer" (global $guest_stack (mut i32)))
  (import "guest" "new_string" (func $new_string (param i32 i32) (result i32)))
  (import "guest" "new_undefined" (func $new_undefined (result i32)))
  (import "guest" "call_function" (func $call_function (param i32 i32 i32 i32 i32) (result i32)))
  (import "guest" "get_string" (func $get_string (param i32) (result i32)))
  (import "guest" "qjs_last_len" (func $last_len (result i32)))
  (import "guest" "qjs_last_ptr" (func $last_ptr (result i32)))
  (global $stack (mut i32) (i32.const 0))
  (global $run (mut i32) (i32.const 0))
  (global $finish (mut i32) (i32.const 0))
  (global $box (mut i32) (i32.const 0))
  (func (export "setup") (param $a i32) (param $b i32) (param $c i32) (param $d i32)
    (global.set $stack (local.get $a)) (global.set $run (local.get $b))
    (global.set $finish (local.get $c)) (global.set $box (local.get $d)))
  (func $enter (param $function i32) (result i32)
    (local $box i32) (local $status i32)
    (global.set $guest_stack (global.get $stack))
    (local.set $box (global.get $box))
    (i32.store offset=8 (local.get $box)
      (call $new_string (i32.load (local.get $box)) (i32.load offset=4 (local.get $box))))
    (local.set $status (call $call_function (local.get $function) (call $new_undefined)
      (i32.add (local.get $box) (i32.const 8)) (i32.const 1) (i32.add (local.get $box) (i32.const 12))))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $status (call $get_string (i32.load offset=12 (local.get $box))))
    (i32.store offset=16 (local.get $box) (call $last_ptr))
    (i32.store offset=20 (local.get $box) (call $last_len))
    (local.get $status))
  (func (export "run") (result i32) (call $enter (global.get $run)))
  (func (export "finish") (result i32) (call $enter (global.get $finish))))
"""


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
        """Run this prelude in a fresh instance and take its image."""
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
    """Cut at page borders into runs of all-zero pages and runs of others."""
    zero = bytes(_PAGE)
    pages = range(0, len(memory), _PAGE)
    for is_zero, run in groupby(pages, lambda start: memory[start : start + _PAGE] == zero):
        addresses = list(run)
        start, stop = addresses[0], addresses[-1] + _PAGE
        yield start, stop - start, None if is_zero else bytearray(memory[start:stop])


@once
def guest_image() -> Image:
    """Built once per process (5 ms) and shared."""
    return _built(wide=False)


@once
def wide_image() -> Image:
    """The image with the globals of `javascript/` compiled (30 ms)."""
    return _built(wide=True)


def _built(*, wide: bool) -> Image:
    imports = Imports()
    with ticker().running():
        instance = Instance(imports, memory_bytes=32 << 20)
        try:
            return instance.snapshot(prelude(wide=wide))
        finally:
            instance.close()
            imports.close()


@once
def _adapter() -> wasmtime.Module:
    return wasmtime.Module(engine(), _ADAPTER)

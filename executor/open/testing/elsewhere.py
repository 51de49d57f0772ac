"""The other process of `weft.testing.replays`, in which the clock of Python is another: `python -m` this module."""

from __future__ import annotations

import asyncio
import datetime
import importlib
import sys
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

import msgspec
import orjson

from compiler.tracing.durable import DurableFunction, durables_of
from executor.blocks.types.python import load_module, steps_of
from executor.kernel.process.tracebacks import is_of_users
from executor.service.replay.checking import check
from executor.service.replay.journals import read

LATER: Final = datetime.timedelta(days=401, hours=5, minutes=7, seconds=11)
_REAL: Final = {"datetime": datetime.datetime, "date": datetime.date}


def main() -> None:
    asked = orjson.loads(sys.stdin.buffer.read())
    answer, sys.stdout = sys.stdout, sys.stderr
    sys.path[:] = asked["path"]
    move_time()
    module = _loaded(asked["module"], asked["file"])
    durable = durables_of(vars(module).values())[asked["name"]]
    move_dates([durable])
    (journal,) = read(asked["journal"])
    done = asyncio.run(check(durable, journal))
    answer.write(orjson.dumps({"parts": done.parts}).decode())
    answer.flush()


def _loaded(name: str, file: str) -> ModuleType:
    if name != "__main__":
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    return load_module(file)


def move_time() -> None:
    """Before modules of users are loaded, which may take a function of `time` into their names."""
    seconds = LATER.total_seconds()
    for name in ("time", "monotonic", "perf_counter"):
        real, real_ns = getattr(time, name), getattr(time, f"{name}_ns")
        setattr(time, name, lambda real=real: real() + seconds)
        setattr(time, f"{name}_ns", lambda real=real_ns: real() + int(seconds * 1e9))


def move_dates(durables: Iterable[DurableFunction[..., Any]]) -> None:
    """In the modules of users, and after their types are known: those stay what they are."""
    durables = list(durables)
    signatures = [*(one.signature for one in durables), *(one.signature for one in steps_of(durables).values())]
    for signature in signatures:
        for one in (*(parameter.type for parameter in signature.parameters), signature.returns):
            if one is not None:
                msgspec.json.Decoder(one)
    moved = {kind: _moved(kind) for kind in _REAL.values()}
    for module in list(sys.modules.values()):
        if is_of_users(getattr(module, "__file__", None) or "<frozen"):
            for name, value in list(vars(module).items()):
                if isinstance(value, type) and value in moved:
                    setattr(module, name, moved[value])
    for name, kind in _REAL.items():
        setattr(datetime, name, moved[kind])


def _moved(kind: type) -> type:
    """Return a class that looks like `kind`, with another time. Its instances are those of `kind`."""

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, kind)

    def later(real: Callable[..., Any]) -> Any:
        return staticmethod(lambda *given, **more: real(*given, **more) + LATER)

    clocks = (name for name in ("now", "utcnow", "today") if hasattr(kind, name))
    names: dict[str, Any] = {name: later(getattr(kind, name)) for name in clocks}
    names["__new__"] = lambda cls, *given, **more: kind(*given, **more)
    return Meta(kind.__name__, (kind,), names)


if __name__ == "__main__":
    main()

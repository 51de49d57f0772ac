"""Writes the request to a guest and reads its answer. The guest may be in a child process or a worker of a cluster:
request and answer are passed on unread, so results, bounds and errors are those of a guest in this process. There each
thread keeps its guest for the next program.
"""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct, convert

from executor.blocks.sandbox import GuestStopped, Language, Reason
from executor.errors import SandboxError
from executor.kernel.values.payload import Bound

if TYPE_CHECKING:
    from executor.blocks.sandbox.guest import Guest
    from executor.blocks.sandbox.python.guest import PythonGuest


_REPORTED = {"index": int, "stdout": str}
# The integers up to here are doubles; it has 16 digits.
_SAFE: Final = 2**53
_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_MANY: Final = b"0" * 16


def request_of(
    kind: str,
    calls: Sequence[Bound],
    seed: str,
    memory: int,
    known: Collection[str] = frozenset(),
    language: Language = "javascript",
    **extra: Any,
) -> bytes:
    """Encode a request. Values are encoded one by one and counted: values that would not fit into the guest's `memory`
    bytes are not built here either. Raises SandboxError: expression_memory, code_memory; number_inexact, for a number
    that JavaScript would change."""
    words = struct.unpack("<4I", hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()[:16])
    items: list[dict[str, Any]] = []
    for call in calls:
        values: list[bytes] = []
        for name, value in call.values.items():
            data = encoded(value)
            # Most values have no 16 digits in a row, which is quick to see.
            if language == "javascript" and len(data) >= len(_MANY) and _MANY in data.translate(_ZEROS):
                _refuse_inexact(name, value)
            values.append(encoded(name) + b":" + data)
            memory -= len(values[-1])
            if memory < 0:
                code = "code_memory" if kind == "code" else "expression_memory"
                raise SandboxError("out of memory: the values it refers to are too large", code=code)
        items.append(
            {
                "s": orjson.Fragment(encoded(call.source)),
                "v": orjson.Fragment(b"{" + b",".join(values) + b"}"),
                "t": orjson.Fragment(encoded(dict(call.texts))),
                "p": call.source in known,
            }
        )
    return encoded({"kind": kind, "calls": items, "seed": words, **extra})


def _refuse_inexact(name: str, value: Any) -> None:
    level: list[Any] = [value]
    while level:  # without places, which cost ten times as much: most values with many digits are fractions
        integers = [item for item in level if type(item) is int]
        if integers and (min(integers) < -_SAFE or max(integers) > _SAFE):
            _refuse_inexact_at(name, value)
        level = [
            *chain.from_iterable(item for item in level if type(item) is list),
            *chain.from_iterable(item.values() for item in level if type(item) is dict),
        ]


def _refuse_inexact_at(name: str, value: Any) -> None:
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        place, item = stack.pop()
        if type(item) is int and abs(item) > _SAFE and (read := Decimal(repr(float(item)))) != item:
            at = f", at {place[:200]}" if place else ""
            raise SandboxError(
                f"<{name}> has the number {item}{at}, which JavaScript would change to {read:.0f}: "
                "its whole numbers are exact up to 2^53",
                code="number_inexact",
                hint="Pass it as text, or refer only to the fields that are needed. Code in Python keeps it.",
            )
        if isinstance(item, dict):
            stack += [(f"{place}.{key}", inner) for key, inner in item.items()]
        elif isinstance(item, list):
            stack += [(f"{place}[{n}]", inner) for n, inner in enumerate(item)]


def encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:
        pass  # lone surrogates and integers beyond 64 bits are JSON too
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise SandboxError(f"a bound value is not JSON: {error}", code="expression_failed") from None


_STOPPED: Final = {
    "timeout": ("timeout", "stopped after {soft_ms} ms"),
    "stopped": ("timeout", "stopped: the result is no longer needed"),
    "memory": ("memory", "out of memory"),
    "output": ("failed", "RangeError: the result is too large: more than {output:,} bytes"),
    "stack": ("failed", "RangeError: Maximum call stack size exceeded"),
    "refused": (
        "failed", "the program asked for something that does not exist in the sandbox, or ran out of memory"
    ),
}  # fmt: skip
_STOPPED_IN_PYTHON: Final = _STOPPED | {
    "output": ("failed", "ValueError: the result is too large: more than {output:,} bytes"),
    "stack": ("failed", "RecursionError: it is nested too deeply"),
}
_NOT_THERE: Final = "there are no files, network, processes, threads or clocks; see docs/reference/sandbox.md"


def stopped(reason: Reason, kind: str, soft_ms: int, output: int, language: Language = "javascript") -> SandboxError:
    code, message = (_STOPPED_IN_PYTHON if language == "python" else _STOPPED)[reason]
    hint = _NOT_THERE if reason == "refused" else ""
    return SandboxError(message.format(soft_ms=soft_ms, output=output), code=f"{kind}_{code}", hint=hint)


def result_of(answer: bytes, kind: str, depth: int) -> Any:
    """Decode the prelude's answer, read as foreign text: user code may have spoiled the built-ins that made it."""
    try:
        value = _decode(answer[1:])
    except ValueError:
        raise SandboxError("the result is not JSON, or nested too deeply", code=f"{kind}_failed") from None
    if answer[:1] != b"O":
        raise _failure(value, kind)
    if answer.count(b"[") + answer.count(b"{") > depth and not _within(value, depth):
        raise SandboxError("the result is nested too deeply", code=f"{kind}_failed")
    return value


def program_result_of(answer: bytes, depth: int) -> tuple[Any, str]:
    pair = result_of(answer, "code", depth + 1)
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str):
        raise SandboxError("the code corrupted its own result", code="code_failed")
    return pair[0], pair[1]


def _decode(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if b"\\u" not in text:  # the standard library reads lone surrogates, orjson refuses them
            raise
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _failure(value: Any, kind: str) -> SandboxError:
    report = value if isinstance(value, dict) else {}
    extra = {name: report[name] for name, kind_ in _REPORTED.items() if isinstance(report.get(name), kind_)}
    message = str(report.get("message") or "Error")[:2000]
    if report.get("memory") is True:
        return SandboxError("out of memory", code=f"{kind}_memory", **extra)
    return SandboxError(message, code=f"{kind}_failed", **extra)


def _within(value: Any, depth: int) -> bool:
    level = [value]
    while level:
        if depth == 0:
            return all(not isinstance(item, list | dict) for item in level)
        level = [
            inner
            for item in level
            if isinstance(item, list | dict)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        depth -= 1
    return True


def too_long(most: int) -> str:
    return f"SyntaxError: the source has more than {most} bytes"


Elsewhere = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Calls `answer` there, with these arguments."""
PLACE: Final = "executor.blocks.sandbox.exchange:answer"

_here = threading.local()


class _Reply(Struct):
    answer: bytes = b""
    stopped: Reason | None = None


async def ask(elsewhere: Elsewhere, request: bytes, **more: Any) -> bytes:
    """Return the answer of a guest in another process; `more` are the other arguments of `answer`. Raises
    GuestStopped."""
    reply = convert(await elsewhere({"request": b64encode(request).decode(), **more}), _Reply)
    if reply.stopped is not None:
        raise GuestStopped(reply.stopped)
    return reply.answer


def answer(
    request: str,
    memory_bytes: int,
    output_bytes: int,
    now_ms: int,
    soft_ms: int,
    hard_ms: int,
    language: Language = "javascript",
) -> dict[str, str]:
    """Answer a request, in the other process. Raises SandboxError(python_missing)."""
    guest: Guest | PythonGuest
    if language == "python":
        from executor.blocks.sandbox.python.guest import PythonGuest  # and with it wasmtime

        guest = PythonGuest(memory_bytes=memory_bytes, output_bytes=output_bytes)
    else:
        guest = _guest(memory_bytes, output_bytes)
    try:
        given = guest.call(b64decode(request), now_ms=now_ms, soft_ms=soft_ms, hard_ms=hard_ms, jobs=True)
    except GuestStopped as stop:
        return {"stopped": stop.reason}
    return {"answer": b64encode(given).decode()}


def _guest(memory_bytes: int, output_bytes: int) -> Guest:
    bounds = (memory_bytes, output_bytes)
    if getattr(_here, "bounds", None) != bounds:
        from executor.blocks.sandbox.guest import Guest  # and with it wasmtime

        if hasattr(_here, "guest"):
            _here.guest.close()
        _here.guest, _here.bounds = Guest(memory_bytes=memory_bytes, output_bytes=output_bytes), bounds
    guest: Guest = _here.guest
    return guest

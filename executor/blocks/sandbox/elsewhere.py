"""One program in the guest of another process: a child process, or a worker of a cluster.

The request to a guest and its answer are passed on unread. So results, bounds and errors are those of a guest in this
process. There each thread keeps its guest, and the process its compiled module, for the next program.
"""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, convert

from executor.blocks.sandbox import GuestStopped, Language, Reason

if TYPE_CHECKING:
    from executor.blocks.sandbox.guest import Guest
    from executor.blocks.sandbox.python.guest import PythonGuest

Elsewhere = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Calls `answer` there, with these arguments."""
PLACE: Final = "executor.blocks.sandbox.elsewhere:answer"

_here = threading.local()


class _Reply(Struct):
    answer: bytes = b""
    stopped: Reason | None = None


def asked(
    request: bytes,
    memory_bytes: int,
    output_bytes: int,
    language: Language = "javascript",
    *,
    now_ms: int,
    soft_ms: int,
    hard_ms: int,
) -> dict[str, Any]:
    """Return the arguments of `answer`, as JSON."""
    return {
        **({} if language == "javascript" else {"language": language}),
        "request": b64encode(request).decode(),
        "memory_bytes": memory_bytes,
        "output_bytes": output_bytes,
        "now_ms": now_ms,
        "soft_ms": soft_ms,
        "hard_ms": hard_ms,
    }


def decode_reply(reply: Any) -> bytes:
    """Return the answer of the guest. Raises GuestStopped."""
    read = convert(reply, _Reply)
    if read.stopped is not None:
        raise GuestStopped(read.stopped)
    return read.answer


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
    """Return the guest of this thread; a new one for other bounds."""
    bounds = (memory_bytes, output_bytes)
    if getattr(_here, "bounds", None) != bounds:
        from executor.blocks.sandbox.guest import Guest  # and with it wasmtime

        if hasattr(_here, "guest"):
            _here.guest.close()
        _here.guest, _here.bounds = Guest(memory_bytes=memory_bytes, output_bytes=output_bytes), bounds
    guest: Guest = _here.guest
    return guest

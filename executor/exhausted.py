"""Is it this machine that has too little of something? Then nothing was begun, and the other side is not to blame."""

from __future__ import annotations

import errno
import socket
from typing import Final

from executor.errors import BlockError

CODE: Final = "out_of_resources"
_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})


def is_exhausted(error: BaseException) -> bool:
    """Does `error`, or what led to it, say that there are no file descriptors or no memory?"""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, MemoryError):
            return True
        if isinstance(one, socket.gaierror):
            if one.errno == socket.EAI_MEMORY:
                return True
        elif isinstance(one, OSError) and one.errno in _ERRNOS:
            return True
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
        todo += [one.__cause__, one.__context__]
    return False


def not_begun(what: str, error: BaseException) -> BlockError:
    """Costs no attempt."""
    message = f"{what}: not started, because this server has no free file descriptors, threads or memory: {error}"
    hint = "it is retried after a pause; if this persists, raise the limits of the server process (ulimit -n)"
    return BlockError(message, code=CODE, deferred="not_begun", hint=hint)

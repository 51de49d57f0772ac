"""Turns what a handler raises into the result of its attempt, so that a run loop outlives the bugs of its blocks."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Final

import msgspec
from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Node
from executor.errors import BlockError, Fenced, Lost, NotFound
from executor.kernel.core import facts as f
from executor.kernel.core.events import ErrorInfo
from executor.kernel.handler.base import Registry
from executor.kernel.process.tracebacks import traceback_of
from executor.kernel.run.attention import OtherCode, not_here
from executor.kernel.run.border import Border
from executor.kernel.run.results import Payload, Result
from executor.kernel.run.time_limit import NoHeartbeat, OutOfTime

log = logging.getLogger("weft.launch")

UNCERTAIN_HINT: Final = (
    "It may have been done all the same, so it is not repeated. Look at the other side, then continue with a retry; or "
    "set policy.retry, if a repetition does no harm."
)


def failure(
    error: BaseException, node: Node, key: NodeKey, attempt: int, border: Border, registry: Registry, at_ms: int
) -> Result:
    """Return the result of an attempt that raised `error`."""
    match error:
        case BlockError():
            traceback = error.traceback or _traceback(registry, node, error)
            info = ErrorInfo(error.code, error.message, error.retryable, node.block, error.hint, traceback)
            info = _not_again(node, info) if error.uncertain else info
            return border.erred(key, attempt, info, error.retry_at_ms, error.deferred)
        case Lost():
            log.warning("block %s of run %s: %s", node.block, border.run_id, error.message)
            return Result(f.AttemptLost(at_ms, key, attempt, error.together, error.ask), Payload())
        case NotFound() if node.type == "durable":  # this process has no functions
            return border.lacks(key, attempt, not_here(str(msgspec.json.decode(node.params).get("function"))).question)
        case OtherCode():
            log.warning("block %s of run %s: %s: %s", node.block, border.run_id, error.title, error.message)
            return border.lacks(key, attempt, error.question)
        case Fenced():  # of a checkpoint: what is logged here is lost as well, for its append will be refused
            info = ErrorInfo(error.code, error.message, False, node.block)
        case NoHeartbeat():
            info = _not_again(node, ErrorInfo("heartbeat_timeout", str(error), True, node.block))
        case TimeoutError():
            queued = f", {error.queued_s:.0f} s of it in the queue" if isinstance(error, OutOfTime) else ""
            message = f"the block took longer than {node.policy.timeout_ms / 1000:g} s{queued}"
            info = _not_again(node, ErrorInfo("timeout", message, True, node.block))
        case asyncio.CancelledError():
            info = ErrorInfo("cancelled", "the attempt was cancelled", False, node.block)
        case _:
            # A handler's bug is the block's failure, not the run loop's: it is recorded like any other. So are a panic
            # in a library and `sys.exit()`: the first would never reach the run, the second would end the process.
            reference = secrets.token_hex(4)
            log.error("block %s (%s) raised [%s]", node.block, node.type, reference, exc_info=error)
            message = f"{type(error).__name__}: {error} (server log reference {reference})"
            traceback = _traceback(registry, node, error)
            info = ErrorInfo("internal_error", message, False, node.block, traceback=traceback)
    return border.erred(key, attempt, info)


def _traceback(registry: Registry, node: Node, error: BaseException) -> str:
    """Return the traceback of an error in a handler that is not a part of weft, else ""."""
    try:
        return traceback_of(error, type(registry.handler(node.type)))
    except NotFound:  # the block type is not here
        return ""


def _not_again(node: Node, info: ErrorInfo) -> ErrorInfo:
    """Return the error of an attempt that may have had its effect: it is repeated only where that does no harm, or
    where the author wants it."""
    if not info.retryable or node.policy.on_uncertain == "retry":
        return info
    return replace(info, retryable=False, hint=info.hint or UNCERTAIN_HINT)

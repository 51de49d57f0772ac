"""Keeps what stays of a turn whose append was refused: the run is folded again from what is on disk, and the results of
attempts wait for that. Those of the inbox and of timers come again by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from executor.errors import LimitExceeded, Unheard
from executor.kernel.core import facts as f
from executor.kernel.core.decide import ATTEMPT_ENDED
from executor.kernel.core.events import ErrorInfo
from executor.kernel.run.attempts import Attempts
from executor.kernel.run.results import Payload, Result

_STAY = (*ATTEMPT_ENDED, f.HandlerWaits, f.RunAborted)


def staying(results: Sequence[Result], error: Unheard | LimitExceeded, attempts: Attempts) -> list[Result]:
    stay = [result for result in results if isinstance(result.fact, _STAY)]
    return [_without_child(result, error, attempts) for result in stay] if isinstance(error, LimitExceeded) else stay


def _without_child(result: Result, error: LimitExceeded, attempts: Attempts) -> Result:
    """Return the result, as a failure if it asks for a child: that was refused."""
    if all(wait.child is None for wait in result.payload.suspends.values()):
        return result
    fact: Any = result.fact  # of an attempt that waits
    if isinstance(fact, f.HandlerWaits):
        attempts.cancel(fact.key)
    info = ErrorInfo(error.code, error.message, hint=error.hint)
    return Result(f.NodeErred(fact.at_ms, fact.key, fact.attempt, info), Payload())

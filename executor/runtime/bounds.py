"""What a run may leave behind in all: the bytes of its outputs, and those of its family.

Reaching a bound ends the run. The end is recorded like any other (`run.cancelling` with the error), and the bytes are
counted from the journal, so a worker that claims the run decides the same.
"""

from __future__ import annotations

from executor.core import facts as f
from executor.core.events import ErrorInfo
from executor.runtime.results import Payload, Result
from executor.services import RunLimits

MIB = 1024 * 1024
HINT = "Return less data, for example a URL instead of a file, or split the work into several runs."


def run_error(limits: RunLimits) -> ErrorInfo:
    message = f"the outputs of this run are larger than {_size(limits.run_bytes)} in total"
    return ErrorInfo("limit_run_bytes", message, hint=HINT)


def family_error(limits: RunLimits) -> ErrorInfo:
    message = f"the outputs of this run and of all runs with the same root are larger than {_size(limits.family_bytes)}"
    return ErrorInfo("limit_family_bytes", message, hint=HINT)


def without_output(result: Result, error: ErrorInfo) -> Result:
    """What an attempt or a wait brought does not fit any more: it has failed for that."""
    match result.fact:
        case f.NodeDone(at_ms, key, attempt) | f.RegionSizeKnown(at_ms, key, attempt):
            return Result(f.NodeErred(at_ms, key, attempt, error), Payload())
        case f.WaitAnswered(at_ms, key, attempt, _, by):
            payload = Payload(signal=result.payload.signal, child=result.payload.child)
            return Result(f.WaitFailed(at_ms, key, attempt, error, by), payload)
        case _:
            return result


def _size(bytes: int) -> str:
    return f"{bytes // MIB:,} MiB" if bytes >= MIB else f"{bytes:,} bytes"

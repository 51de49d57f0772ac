"""Compares what a durable function does with what a journal has of it."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

import orjson
from msgspec import Struct

from compiler.tracing.durable import DurableFunction
from executor.errors import BlockError
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.given import is_same
from executor.kernel.run.mismatch import call_text
from executor.kernel.run.step_work import Call
from executor.kernel.store.run_rows import Record
from executor.service.replay.entering import Entered, enter
from executor.service.replay.journals import Journal

SHOWN_MAX: Final = 200  # characters of a value


class Checked(Struct, frozen=True):
    """`parts`: where the function does something else, or "" if it fits. `status` of the run as recorded, and what the
    function returned or the code of its error now; both are None if it waits where the run waits, at `waits`.
    `left_out`: the number of events that were not looked at, as they follow an output that is not there."""

    run: str
    status: str
    parts: str
    output: Any = None
    error: str | None = None
    waits: tuple[str, ...] = ()
    left_out: int = 0


async def check(durable: DurableFunction[..., Any], journal: Journal) -> Checked:
    """Enter the function with all that the journal has. Raises BadRequest, CorruptJournal."""
    entered = await enter(durable, journal)
    error = entered.error if entered.end == "raised" else None
    code = error.code if isinstance(error, BlockError) else None if error is None else type(error).__name__
    file = PurePath(durable.function.__code__.co_filename).name
    waits = tuple(_call_at(call, file) for call in entered.waits)
    parts = _parts(entered, journal, file)
    return Checked(journal.run, journal.status, parts, entered.value, code, waits, journal.left_out)


def _call_at(call: Call, file: str) -> str:
    return f"{file}:{call.site.line}: {call_text(call)}" if call.site.line else call_text(call)


def _parts(entered: Entered, journal: Journal, file: str) -> str:
    recorded = journal.end
    failed = recorded is not None and recorded.type == "node.failed"
    was = "was open"
    if recorded is not None:
        was = f"failed: {data_of(recorded)['error']['message']}" if failed else f"returned {_text(recorded.output)}"
    match entered.end:
        case "parted":
            return str(entered.error)
        case "open" | "returned" | "raised" if recorded is None and journal.status in ("running", "queued"):
            return ""  # it had not come further when it was read
        case "open" if entered.calls:
            call = entered.calls[0]
            at = f"{file}:{call.site.line}: call {call.n}, {call_text(call)}"
            return f"{at}, is not in the journal: the run {was} here"
        case "open" if recorded is not None:
            return f"it waits where the run {was}"
        case "returned" if recorded is None or failed or _differs(entered.value, recorded, journal):
            return f"it returned {_text(orjson.dumps(entered.value))}, and the run {was}"
        case "raised" if not failed:
            return f"it raised {entered.error}, and the run {was}"
    return ""


def _differs(value: Any, recorded: Record, journal: Journal) -> bool:
    is_known = recorded.output is not None and not journal.is_stripped
    return is_known and not is_same(value, _value(recorded.output))


def _value(output: bytes | None) -> Any:
    return None if output is None else orjson.loads(output)


def _text(output: bytes | None) -> str:
    text = (output or b"null").decode()
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"

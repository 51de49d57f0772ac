"""Compares what a durable function does with what a journal has of it."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

import orjson
from msgspec import Struct

from compiler.tracing.durable import Durable
from executor.errors import BlockError
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.given import is_same
from executor.kernel.run.mismatch import call_text
from executor.service.replay.entering import Entered, enter
from executor.service.replay.journals import Journal

SHOWN_MAX: Final = 200  # characters of a value


class Checked(Struct, frozen=True):
    """`parts`: where the function does something else, or "" if it fits. `status` of the run as recorded, and what the
    function returned or the code of its error now; both are None if it waits where the run waits."""

    run: str
    status: str
    parts: str
    output: Any = None
    error: str | None = None


async def check(durable: Durable[..., Any], journal: Journal) -> Checked:
    """Enter the function with all that the journal has. Raises BadRequest, CorruptJournal."""
    entered = await enter(durable, journal)
    error = entered.error if entered.end == "raised" else None
    code = error.code if isinstance(error, BlockError) else None if error is None else type(error).__name__
    file = PurePath(durable.function.__code__.co_filename).name
    return Checked(journal.run, journal.status, _parts(entered, journal, file), entered.value, code)


def _parts(entered: Entered, journal: Journal, file: str) -> str:
    recorded = journal.end
    failed = recorded is not None and recorded.type == "node.failed"
    was = "was open"
    if recorded is not None:
        was = f"failed: {data_of(recorded)['error']['message']}" if failed else f"returned {_text(recorded.output)}"
    match entered.end:
        case "parted":
            return str(entered.error)
        case "open" if entered.calls and journal.status not in ("running", "queued"):
            call = entered.calls[0]
            at = f"{file}:{call.site.line}: call {call.n}, {call_text(call)}"
            return f"{at}, is not in the journal: the run {was} here"
        case "open" if recorded is not None:
            return f"it waits where the run {was}"
        case "returned" if recorded is None or failed or not is_same(entered.value, _value(recorded.output)):
            return f"it returned {_text(orjson.dumps(entered.value))}, and the run {was}"
        case "raised" if not failed:
            return f"it raised {entered.error}, and the run {was}"
    return ""


def _value(output: bytes | None) -> Any:
    return None if output is None else orjson.loads(output)


def _text(output: bytes | None) -> str:
    text = (output or b"null").decode()
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"

"""RunEvent: one record of a journal as a program wants it."""

from __future__ import annotations

from typing import Any

import orjson

from executor.journal.reader import output_of
from executor.store.contract import Store
from executor.store.rows import Record
from executor.views import RunEvent


async def build(store: Store, run: str, record: Record) -> RunEvent:
    """With its output, however large. Raises CorruptJournal."""
    data: dict[str, Any] = orjson.loads(record.data) if record.data else {}
    output = await output_of(store, record)
    if output is not None:
        data.pop("blob", None)
        data["output"] = orjson.loads(output)
    key = f"{record.node}@{record.path}" if record.node and record.path else record.node
    return RunEvent(run, record.seq, record.at_ms, record.type, key, record.attempt, data)

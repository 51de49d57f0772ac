"""RunEvent: one record of a journal as a program wants it."""

from __future__ import annotations

import orjson

from executor.journal.codec import data_of, key_of
from executor.journal.reader import output_of
from executor.store.contract import Store
from executor.store.rows import Record
from executor.views import RunEvent


async def build(store: Store, run: str, record: Record) -> RunEvent:
    """With its output, however large. Raises CorruptJournal."""
    data = data_of(record)
    output = await output_of(store, record)
    if output is not None:
        data.pop("blob", None)
        data["output"] = orjson.loads(output)
    return RunEvent(run, record.seq, record.at_ms, record.type, key_of(record), record.attempt, data)

"""Signals to runs: sent, stored until a wait of their name opens, listed; `engine.signals`."""

from __future__ import annotations

from typing import Any

import orjson

from executor.errors import Conflict
from executor.kernel.core.messages import SignalSent, encode
from executor.kernel.read.find import existing_run, find_run
from executor.kernel.run.answers import check_payload
from executor.kernel.store.topics.inbox import SignalRow
from executor.service.parts import Parts
from executor.service.views import SignalView, view_of


class Signals:
    """Sends and lists the signals of a run; `engine.signals`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store

    async def send(
        self,
        run: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        dedupe_key: str | None = None,
        by: str | None = None,
    ) -> tuple[int, bool]:
        """Send a signal. It is stored until a wait of its name opens. Returns its number, and True if it is new. Raises
        NotFound, Conflict (the run has ended)."""
        parts = self._parts
        await find_run(self._store, run)
        admitted = await parts.files.admit(payload, "/payload")
        data = parts.redactor.redact_json(check_payload(admitted.value))
        await parts.files.hold(run, admitted.files)
        by = parts.redactor.redact_value(by)
        # The name of a wait is recorded like this: with the names of secrets in place of their values.
        label = parts.redactor.label
        name, correlation, dedupe_key = (
            label(name),
            correlation and label(correlation),
            dedupe_key and label(dedupe_key),
        )
        sent = encode(SignalSent(name))
        posted = await self._store.post_signal(run, name, correlation, data, dedupe_key, by, sent, parts.clock.now_ms())
        if posted is None:
            raise Conflict(f"run {run} has ended and accepts no more signals", code="run_ended")
        row, new = posted
        parts.wake(run)
        return row.seq, new

    async def list(
        self,
        run: str,
        name: str | None = None,
        correlation: str | None = None,
        received_after_ms: int | None = None,
        limit: int = 200,
    ) -> list[SignalView]:
        """List signals in order of arrival, consumed ones included. Raises NotFound."""
        label = self._parts.redactor.label
        name, correlation = name and label(name), correlation and label(correlation)
        async with existing_run(self._store, run):
            rows = await self._store.list_signals(run, name, correlation, received_after_ms, limit)
        return [_view(row) for row in rows]


def _view(row: SignalRow) -> SignalView:
    return view_of(SignalView, row, payload=orjson.loads(row.payload), taken_by=row.consumed_by)

"""Signals to runs: sent, kept until a wait of their name opens, listed; `engine.signals`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from executor.answers import check_payload
from executor.core.messages import SignalSent, encode
from executor.errors import Conflict
from executor.store.rows import SignalRow
from executor.views import SignalView

if TYPE_CHECKING:
    from executor.engine import Engine


class Signals:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store

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
        """Send a signal; kept until a wait of its name opens. Returns (its number, whether it is new).
        Raises NotFound, Conflict (the run has ended)."""
        engine = self._engine
        await engine.run_row(run)
        data = engine.redactor.redact_json(check_payload(payload))
        by = engine.redactor.redact_value(by)
        # As what a block waits for is recorded: with the names of secrets in place of them.
        label = engine.redactor.label
        name, correlation, dedupe_key = (
            label(name),
            correlation and label(correlation),
            dedupe_key and label(dedupe_key),
        )
        sent = encode(SignalSent(name))
        posted = await self._store.post_signal(run, name, correlation, data, dedupe_key, by, sent, engine.now_ms())
        if posted is None:
            raise Conflict(f"run {run} has ended and accepts no more signals", code="run_ended")
        row, new = posted
        engine.wake(run)
        return row.seq, new

    async def list(
        self,
        run: str,
        name: str | None = None,
        correlation: str | None = None,
        received_after_ms: int | None = None,
        limit: int = 200,
    ) -> list[SignalView]:
        """In order of arrival, those that were taken too. Raises NotFound."""
        label = self._engine.redactor.label
        name, correlation = name and label(name), correlation and label(correlation)
        async with self._engine.whole(run):
            rows = await self._store.list_signals(run, name, correlation, received_after_ms, limit)
        return [_view(row) for row in rows]


def _view(row: SignalRow) -> SignalView:
    return SignalView(
        seq=row.seq,
        name=row.name,
        correlation=row.correlation,
        payload=orjson.loads(row.payload),
        dedupe_key=row.dedupe_key,
        received_at_ms=row.received_at_ms,
        received_by=row.received_by,
        taken_by=row.consumed_by,
    )

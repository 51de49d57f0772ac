"""Messages from programs: signals to a run, stored until a wait of their name opens (`engine.signals`), and the one
request to the address of a `callback` block (`engine.callbacks`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from compiler.tracing.asks import SIGNAL as UPDATE
from executor.errors import AnswerInvalid, BadRequest, BlockError, Conflict
from executor.kernel.core.messages import Answer, SignalSent, encode
from executor.kernel.read.find import existing_run, find_run
from executor.kernel.run.answers import check_payload
from executor.kernel.run.new_run import BOUNDS_HINT
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.schema import violations_aside
from executor.service.parts import Parts, Topic
from executor.service.topics.waits import Waits, answered_before
from executor.service.views import SignalView, WaitView, view_of


class Signals(Topic):
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
        NotFound, BadRequest, Conflict (the run has ended)."""
        if name.startswith(UPDATE):
            hint = "send it as an update: engine.update(run, name, value), or `weft update RUN NAME JSON`"
            raise BadRequest(f"a signal cannot have a name with {UPDATE!r}", code="signal_name_reserved", hint=hint)
        seq, new, _ = await self.post(run, name, payload, correlation, dedupe_key, by)
        return seq, new

    async def post(
        self,
        run: str,
        name: str,
        payload: Any,
        correlation: str | None = None,
        dedupe_key: str | None = None,
        by: str | None = None,
        pointer: str = "/payload",
    ) -> tuple[int, bool, bool]:
        """Store a signal of any name. Returns its number, whether it is new, and whether the stored one is the same.
        `pointer`: the place of `payload` in the request. Raises as `send`."""
        parts = self._parts
        await find_run(self._store, run)
        admitted = await parts.files.admit(payload, pointer)
        data = parts.redactor.redact_json(check_payload(admitted.value, pointer))
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
            raise Conflict(f"run {run} has ended and accepts no more signals and updates", code="run_ended")
        row, new = posted
        parts.wake(run)
        return row.seq, new, (row.name, row.payload) == (name, data)

    async def list(
        self,
        run: str,
        name: str | None = None,
        correlation: str | None = None,
        received_after_ms: int | None = None,
        limit: int = 200,
    ) -> list[SignalView]:
        label = self._parts.redactor.label
        name, correlation = name and label(name), correlation and label(correlation)
        async with existing_run(self._store, run):
            rows = await self._store.list_signals(run, name, correlation, received_after_ms, limit)
        return [view_of(SignalView, row, payload=orjson.loads(row.payload), taken_by=row.consumed_by) for row in rows]


# --- callbacks ---


# The headers of the request that a block sees: no credentials, and none that proxies write.
HEADERS: Final = frozenset(
    {"content-type", "date", "idempotency-key", "user-agent", "x-correlation-id", "x-event-id", "x-request-id"}
)
BY_CHARS_MAX: Final = 200


class Callbacks(Topic):
    def __init__(self, parts: Parts, waits: Waits) -> None:
        super().__init__(parts)
        self._waits = waits

    async def receive(self, token: str, body: Any, headers: Mapping[str, str]) -> WaitView:
        """Take `body` (any JSON value) as the answer. `headers`: names in lower case. Raises NotFound, AnswerInvalid
        (the wait is still open), AlreadyAnswered."""
        parts = self._parts
        row = await self._waits.by_token(token, "callback")
        if row.status != "pending":
            raise answered_before(await self._waits.view(row))
        if row.schema is not None:
            found = await violations_aside(orjson.loads(row.schema), body, parts.services.sandbox.matches)
            if found:
                pointer, message = found[0]["pointer"], found[0]["message"]
                raise AnswerInvalid(
                    f"the body does not match the schema{pointer and f' at {pointer}'}: {message}",
                    pointer=pointer,
                    hint="the URL is still open: send a corrected body",
                    errors=found,
                )
        now_ms = parts.clock.now_ms()
        shown = {name: value for name, value in headers.items() if name in HEADERS}
        output = parts.redactor.redact_value({"body": body, "headers": shown, "received_at": now_ms})
        try:
            response = encode_payload(output)
        except BlockError as error:
            raise AnswerInvalid(error.message, code=error.code, pointer="", hint=BOUNDS_HINT) from None
        by = parts.redactor.redact(headers.get("user-agent", ""))[:BY_CHARS_MAX] or None
        return await self._waits.record_answer(row, response, by, Answer(row.id, now_ms, output=output, by=by), now_ms)

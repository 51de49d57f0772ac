"""Answers of programs: a `callback` block waits for one request to its address; `engine.callbacks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from executor.errors import AnswerInvalid, BlockError
from executor.kernel.core.messages import Answer
from executor.kernel.run.answers import BOUNDS_HINT
from executor.kernel.values.payload import encode
from executor.kernel.values.schema import violations_aside
from executor.service.parts import Parts
from executor.service.topics.waits import Waits, answered_before
from executor.service.views import WaitView

# The headers of the request that a block sees: no credentials, and none that proxies write.
HEADERS: Final = frozenset(
    {"content-type", "date", "idempotency-key", "user-agent", "x-correlation-id", "x-event-id", "x-request-id"}
)
BY_CHARS_MAX: Final = 200


class Callbacks:
    """Receives requests to the addresses of `callback` blocks; `engine.callbacks`."""

    def __init__(self, parts: Parts, waits: Waits) -> None:
        self._parts = parts
        self._waits = waits

    async def receive(self, token: str, body: Any, headers: Mapping[str, str]) -> WaitView:
        """Take `body` (any JSON value) as the answer. `headers`: names in lower case. Raises NotFound, AnswerInvalid
        (it does not fit the block's schema, or the bounds; the wait is still open), AlreadyAnswered."""
        parts = self._parts
        row = await self._waits.by_token(token, "callback")
        if row.status != "pending":
            raise answered_before(await self._waits.view(row))
        if row.schema is not None:
            found = await violations_aside(orjson.loads(row.schema), body, parts.services.sandbox.matches)
            if found:
                raise AnswerInvalid(
                    f"the body does not match the schema{_at(found[0]['pointer'])}: {found[0]['message']}",
                    pointer=found[0]["pointer"],
                    hint="the URL is still open: send a corrected body",
                    errors=found,
                )
        now_ms = parts.clock.now_ms()
        shown = {name: value for name, value in headers.items() if name in HEADERS}
        output = parts.redactor.redact_value({"body": body, "headers": shown, "received_at": now_ms})
        try:
            response = encode(output)
        except BlockError as error:
            raise AnswerInvalid(error.message, code=error.code, pointer="", hint=BOUNDS_HINT) from None
        by = parts.redactor.redact(headers.get("user-agent", ""))[:BY_CHARS_MAX] or None
        return await self._waits.record_answer(row, response, by, Answer(row.id, now_ms, output=output, by=by), now_ms)


def _at(pointer: str) -> str:
    return f" at {pointer}" if pointer else ""

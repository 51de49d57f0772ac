"""The shapes of waits, callbacks and signals that cross HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from executor.views import SignalView
from server.wire.bounds import PersonName, ShortText


class SignalRequest(Struct, forbid_unknown_fields=True):
    """`dedupe_key`: a repeated key returns the first signal; the Idempotency-Key header does the same."""

    payload: Any = None
    correlation: ShortText | None = None
    dedupe_key: ShortText | None = None
    by: PersonName | None = None


class AnswerRequest(Struct, forbid_unknown_fields=True):
    """POST /resume/{token}. `by` is the name recorded with the answer."""

    action: str | None = None
    fields: dict[str, Any] = {}
    by: PersonName | None = None


class SignalAccepted(Struct, frozen=True):
    """`seq` counts the signals of this run from 1. `new` is false if the dedupe key was used before."""

    run: str
    name: str
    seq: int
    new: bool


class WithdrawRequest(Struct, forbid_unknown_fields=True):
    """DELETE /api/runs/{id}/waits/{wait}. Both fields are recorded in the error of the block."""

    by: PersonName | None = None
    reason: Annotated[str, Meta(max_length=500)] = ""


class CallbackTaken(Struct, frozen=True):
    """POST /callbacks/{token}: the request was accepted as the answer."""

    accepted: bool
    received_at: int


class SignalList(Struct, frozen=True):
    """In order of arrival, including signals that were received by a wait."""

    signals: list[SignalView]

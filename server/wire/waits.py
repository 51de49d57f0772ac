"""The shapes of waits, callbacks and signals that cross HTTP."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from executor.views import SignalView
from server.wire import PersonName


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

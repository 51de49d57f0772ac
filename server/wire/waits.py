"""The shapes of waits, callbacks and signals that cross HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from executor.kernel.core.events import WaitKind
from executor.kernel.store.topics.waits import WaitStatus
from executor.service.views import SignalView, WaitShown, WaitView
from server.wire import PAGE_MAX, PersonName, ShortText


class PublicWait(WaitShown, frozen=True, omit_defaults=False):
    """A wait as it is shown to the holder of its link. `label` is the name of the block; `age_s` is in seconds since it
    opened."""


class Wait(WaitView, frozen=True, omit_defaults=False):
    """A wait with its `link`, which answers it while it is pending; for a callback it is the URL to post to."""


class WaitCounts(Struct, frozen=True):
    """The number of waits by status."""

    pending: int
    answered: int
    cancelled: int
    expired: int


class WaitPage(Struct, frozen=True):
    """`next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`. `capped`:
    statuses of which there are at least 100,000 waits; they are not counted further."""

    waits: list[Wait]
    next: str | None
    counts: WaitCounts | None
    capped: list[WaitStatus]


class WaitsQuery(Struct, frozen=True):
    status: Annotated[
        Literal[WaitStatus, "all"], Meta(description="pending (default), answered, cancelled, expired or all.")
    ] = "pending"
    kind: (
        Annotated[
            WaitKind, Meta(description="Only waits of this kind. Waits of callback blocks have the kind webhook.")
        ]
        | None
    ) = None
    workflow: Annotated[str, Meta(description="Only waits of runs of this workflow.")] | None = None
    run: Annotated[str, Meta(description="Only waits of this run.")] | None = None
    before: Annotated[str, Meta(description="`next` of the previous page.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Waits per page.")] = 200
    counts: Annotated[bool, Meta(description="0: do not count waits; the answer comes sooner.")] = True


class SignalsQuery(Struct, frozen=True):
    name: Annotated[str, Meta(description="Only signals of this name.")] | None = None
    correlation: Annotated[str, Meta(description="Only signals with this correlation.")] | None = None
    received_after: (
        Annotated[int, Meta(description="Only signals at or after this time, Unix milliseconds.")] | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Maximum number of signals, oldest first.")] = 200


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
    received_at_ms: int


class SignalList(Struct, frozen=True):
    """In order of arrival, including signals that were received by a wait."""

    signals: list[SignalView]

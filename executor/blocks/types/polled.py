"""Triggers that poll a source: the part that reads it, and what all of them have in common. `event.<source>` is their
type. The poller (executor.service.triggers.polls) calls `poll` now and then, starts a run for each event, and keeps
the state of the source in the same transaction; the block itself only passes its event on.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Container
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from compiler.catalog import BlockSpec, Finding, Params
from executor.blocks.types.params import TypedParams, param, shape
from executor.kernel.handler.base import Block, Done, StepContext

EVERY_MIN_S: Final = 10
EVERY_DEFAULT_S: Final = 60


class Event(Struct, frozen=True):
    """One event. `id`: no other event of the source has it. `load` returns its value, with files that it has stored,
    once a run needs it, or raises BlockError."""

    id: str
    value: Any = None
    load: Callable[[], Awaitable[Any]] | None = None

    async def loaded(self) -> Any:
        return self.value if self.load is None else await self.load()


class Before(Struct, frozen=True):
    """The place of the source after the poll before. `position` is the source's own, None at the first poll; `seen` has
    the ids of its last events. `newest`: of what is there, only the last event is wanted."""

    position: Any
    seen: Container[str]
    first: bool
    newest: bool = False


class Found(Struct, frozen=True):
    """The events of a poll, oldest first; those that were seen before are left out by the poller.

    position  where the source is after them
    more      there are further ones: it is polled again at once
    note      what could not be read, for people
    again     from this position, too, all are found again until they are seen
    """

    events: list[Event]
    position: Any = None
    more: bool = False
    note: str | None = None
    again: bool = False


@runtime_checkable
class Source(Block, Protocol):
    async def poll(self, ctx: StepContext, before: Before) -> Found:
        """Read what is new. Raises BlockError."""


class Polling(TypedParams, literal=True):
    """The params of all of them, after their own."""

    every_s: int = param(
        "Poll every (seconds)",
        "Time between two polls.",
        default=EVERY_DEFAULT_S,
        order=2_000,
        minimum=EVERY_MIN_S,
        maximum=31 * 86_400,
    )
    existing: bool = param(
        "Also what is there already",
        "The first poll starts runs, too. Without it, it only marks where the source is.",
        default=False,
        order=2_001,
        advanced=True,
    )
    batch_max: int | None = param(
        "Events in one run",
        "A run then gets a list of at most this number. Without it, each event starts a run.",
        order=2_002,
        advanced=True,
        minimum=1,
        maximum=1_000,
    )
    batch_within_s: float = param(
        "Wait for a full list (seconds)",
        "A list that is not full starts its run after this time.",
        default=0,
        order=2_003,
        advanced=True,
        minimum=0,
        maximum=86_400,
    )
    debounce_s: float = param(
        "Wait until it is quiet (seconds)",
        "Events start one run together once no other has come for this time.",
        default=0,
        order=2_004,
        advanced=True,
        minimum=0,
        maximum=3_600,
    )
    enabled: bool = param(
        "Enabled", "Can also be changed later without publishing a new version.", default=True, order=2_005
    )

    @property
    def groups(self) -> bool:
        """True if a run gets a list of events."""
        return bool(self.batch_max or self.batch_within_s or self.debounce_s)


# Changes of these leave the source the same one, whose state counts.
SAME_SOURCE: Final = frozenset({*Polling.declared, "credential", "connection", "timeout_s", "delivery"})


def with_polling(params: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a source's params with those of all triggers that poll."""
    return {**params, "properties": {**params["properties"], **Polling.json_schema["properties"]}}


def event_spec(
    type: str,
    title: str,
    description: str,
    params: dict[str, Any],
    *,
    event: Callable[[Params], dict[str, Any] | None],
    check: Callable[[Params], tuple[Finding, ...]] | None = None,
    sentence: str = "",
    icon: str = "events",
) -> BlockSpec:
    """Return the spec of a trigger that polls. `event`: params -> JSON Schema of an event."""

    def output_of(params: Params) -> dict[str, Any]:
        at = {"type": "integer", "description": "When it was found, in Unix milliseconds"}
        one = event(params) or {}
        groups = any(params.get(name) for name in ("batch_max", "batch_within_s", "debounce_s"))
        return shape(event=one, id="string", at=at, **({"events": {"type": "array", "items": one}} if groups else {}))

    return BlockSpec(
        type=type,
        title=title,
        description=description,
        category="trigger",
        params=with_polling(params),
        trigger=True,
        inline=True,
        output_from=output_of,
        check=check,
        sentence=sentence,
        icon=icon,
    )


async def passed_on(ctx: StepContext) -> Done:
    """Return the event of the run, or the input of a run that was started by hand, with empty values for the rest."""
    sent = ctx.input if isinstance(ctx.input, dict) else {"event": ctx.input}
    if "event" not in sent:
        sent = {"event": sent}
    return Done({"event": None, "id": "", "at": ctx.now_ms, **sent})


def digest(id: str) -> str:
    """Return the id as it is kept among those that were seen."""
    return urlsafe_b64encode(hashlib.blake2b(id.encode(), digest_size=9).digest()).decode()

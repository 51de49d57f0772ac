"""The shapes of schedules and webhooks that cross HTTP. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from executor.kernel.store.topics.schedules import FireOutcome
from executor.kernel.values.cron import EXPRESSION_SCHEMA
from executor.service.triggers.schedules import ScheduleView
from executor.service.triggers.webhooks import DeliveryView, RefusalView, WebhookView


class ScheduleList(Struct, frozen=True):
    """The schedules, by id."""

    schedules: list[ScheduleView]


class FireView(Struct, frozen=True):
    """The outcome at `at_ms` of the scheduled time `due_ms`."""

    due_ms: int
    at_ms: int
    outcome: FireOutcome
    run: str | None
    error: str | None


class ScheduleDetail(ScheduleView, frozen=True, kw_only=True):
    """`fires`: the last 50 scheduled times, newest first."""

    fires: list[FireView]


class CronPreview(Struct, frozen=True):
    """`upcoming_ms`: the next five times of the expression in that time zone."""

    expr: str
    tz: str
    upcoming_ms: tuple[int, ...]


class TriggerDeleted(Struct, frozen=True):
    id: str
    deleted: bool


class WebhookList(Struct, frozen=True):
    """The webhooks, by id."""

    webhooks: list[WebhookView]


class WebhookDetail(WebhookView, frozen=True, kw_only=True):
    """`secret`: the key of signatures, or the bearer token; null when it is read from the environment or not required.
    `deliveries`: the last 50, newest first. `refused`: by reason, including those before the last start of the
    server."""

    secret: str | None
    deliveries: list[DeliveryView]
    refused: list[RefusalView]


class WebhookRotated(Struct, frozen=True):
    """`secret`: the new one; the old one no longer works."""

    id: str
    secret: str


class HookStarted(Struct, frozen=True):
    """202: the run is stored. `status_url` requires the token of the server, if it has one."""

    run: str
    status: str
    delivery: str
    status_url: str


class HookResult(Struct, frozen=True):
    """200: the run has succeeded."""

    run: str
    status: str
    delivery: str
    output: Any


class TriggersQuery(Struct, frozen=True):
    workflow: Annotated[str, Meta(description="Only for this workflow.")] | None = None


class CronQuery(Struct, frozen=True):
    expr: Annotated[
        str,
        Meta(
            description="Minute, hour, day of the month, month, day of the week.",
            extra_json_schema=EXPRESSION_SCHEMA,
            extra={"hint": "GET /api/cron?expr=0+9+*+*+MON-FRI&tz=UTC"},
        ),
    ]
    tz: Annotated[str, Meta(description="A time zone such as Europe/Berlin. Default: UTC.")] = "UTC"

"""Triggers, which start runs without a person: schedules and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.client.call import Call, call, present

if TYPE_CHECKING:
    from server.client.answers import (
        CronPreview,
        RunAccepted,
        ScheduleDetail,
        ScheduleList,
        ScheduleSpec,
        TriggerDeleted,
        WebhookDetail,
        WebhookList,
        WebhookRotated,
        WebhookSpec,
    )


class Schedules:
    """`/api/schedules`, `/api/cron`."""

    @call
    def schedules(self, workflow: str | None = None) -> Call[ScheduleList]:
        """List schedules by id, each with its next five times."""
        return Call("GET", "/api/schedules", params=present(workflow=workflow))

    @call
    def schedule(self, schedule: str) -> Call[ScheduleDetail]:
        """Return a schedule with the outcomes of its last times."""
        return Call("GET", "/api/schedules/{id}", (schedule,))

    @call
    def put_schedule(self, schedule: str, spec: ScheduleSpec) -> Call[ScheduleDetail]:
        """Add or change a schedule: `{"workflow": ..., "cron": ...}`, and its other members."""
        return Call("PUT", "/api/schedules/{id}", (schedule,), body=dict(spec))

    @call
    def delete_schedule(self, schedule: str) -> Call[TriggerDeleted]:
        """Delete a schedule. Its runs are kept."""
        return Call("DELETE", "/api/schedules/{id}", (schedule,))

    @call
    def enable_schedule(self, schedule: str) -> Call[ScheduleDetail]:
        """It continues with its next time from now."""
        return Call("POST", "/api/schedules/{id}/enable", (schedule,))

    @call
    def disable_schedule(self, schedule: str) -> Call[ScheduleDetail]:
        """It starts no run until it is enabled."""
        return Call("POST", "/api/schedules/{id}/disable", (schedule,))

    @call
    def run_schedule(self, schedule: str) -> Call[RunAccepted]:
        """Start a run now, in addition to its times."""
        return Call("POST", "/api/schedules/{id}/run", (schedule,))

    @call
    def cron(self, expr: str, tz: str | None = None) -> Call[CronPreview]:
        """Return the next five times of a cron expression; `tz` is UTC by default."""
        return Call("GET", "/api/cron", params=present(expr=expr, tz=tz))


class Webhooks:
    """`/api/webhooks`, which has public forms and chats as well."""

    @call
    def webhooks(self, workflow: str | None = None) -> Call[WebhookList]:
        """List webhooks by id, without their secrets."""
        return Call("GET", "/api/webhooks", params=present(workflow=workflow))

    @call
    def webhook(self, webhook: str) -> Call[WebhookDetail]:
        """Return a webhook with its secret and its last deliveries."""
        return Call("GET", "/api/webhooks/{id}", (webhook,))

    @call
    def put_webhook(self, webhook: str, spec: WebhookSpec) -> Call[WebhookDetail]:
        """Add or change a webhook: `{"workflow": ...}`, and its other members."""
        return Call("PUT", "/api/webhooks/{id}", (webhook,), body=dict(spec))

    @call
    def delete_webhook(self, webhook: str) -> Call[TriggerDeleted]:
        """Delete a webhook. Its runs are kept."""
        return Call("DELETE", "/api/webhooks/{id}", (webhook,))

    @call
    def enable_webhook(self, webhook: str) -> Call[WebhookDetail]:
        """It takes requests again."""
        return Call("POST", "/api/webhooks/{id}/enable", (webhook,))

    @call
    def disable_webhook(self, webhook: str) -> Call[WebhookDetail]:
        """It refuses requests until it is enabled."""
        return Call("POST", "/api/webhooks/{id}/disable", (webhook,))

    @call
    def rotate_webhook(self, webhook: str) -> Call[WebhookRotated]:
        """Create a new secret; the old one stops working."""
        return Call("POST", "/api/webhooks/{id}/rotate", (webhook,))

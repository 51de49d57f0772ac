"""Rows of messages about a run, each written with its cause: alerts to operators, questions to people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

import orjson

from compiler.plan import Settings
from executor.kernel.handler.needs import AlertSettings, NotifySettings
from executor.kernel.run.answers import ASK_PEOPLE
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.alerts import AlertChannel, AlertKind, AlertRow
from executor.kernel.store.topics.outbox import JOB_CHANNEL, NOT_CREATED, NotificationRow
from executor.kernel.store.topics.waits import WaitRow

# Runs of error workflows have it as idempotency key, with the run that failed: one for each.
ERROR_KEY: Final = "error:"
INSTALLATION: Final = ""  # as target: the addresses of the settings, as they are when the message goes out
# Sealed JSON: the addresses are those of the server, as they are when the message goes out.
SERVER_WIDE: Final = orjson.dumps(['{"server":true}'])
# Kinds of waits that cannot be late: for a time, and for a run, which has alerts of its own.
_NOT_LATE: Final = frozenset({"timer", "child"})


def alerts_of_failure(run: RunRow, settings: Settings, server: AlertSettings, at_ms: int) -> tuple[AlertRow, ...]:
    """Return the alerts of a failed run. A child run has none, because its parent receives the failure; nor has a run
    of a draft. The failure of a run of an error workflow starts no error workflow."""
    if run.parent_run_id is not None or run.draft_id is not None:
        return ()
    cause = f"failed:{run.id}"
    found = _alerts(cause, "run.failed", run.workflow, run.id, "", settings, server, at_ms, at_ms)
    name = settings.error_workflow or server.error_workflow
    if name and not (run.idempotency_key or "").startswith(ERROR_KEY):
        row = AlertRow(cause, "workflow", name, "run.failed", run.workflow, run.id, "", at_ms, at_ms)
        return (*found, row)
    return found


def alerts_of_wait(run: RunRow, wait: WaitRow, settings: Settings, server: AlertSettings) -> tuple[AlertRow, ...]:
    """Due when the wait has been open for too long; until then it may be closed."""
    late_ms = server.waiting_ms
    if settings.alerts is not None and settings.alerts.waiting_ms is not None:
        late_ms = settings.alerts.waiting_ms
    if late_ms is None or wait.kind in _NOT_LATE or run.draft_id is not None:
        return ()
    cause, at_ms = f"waiting:{run.id}:{wait.id}", wait.opened_at_ms
    return _alerts(cause, "run.waiting", run.workflow, run.id, wait.id, settings, server, at_ms, at_ms + late_ms)


def alerts_of_queued(run: str, workflow: str, at_ms: int, now_ms: int, server: AlertSettings) -> tuple[AlertRow, ...]:
    return _alerts(f"queued:{run}", "run.queued", workflow, run, "", Settings(), server, at_ms, now_ms)


def alerts_of_missed(
    schedule: str, workflow: str, due_ms: int, now_ms: int, settings: Settings, server: AlertSettings
) -> tuple[AlertRow, ...]:
    cause = f"missed:{schedule}:{due_ms}"
    return _alerts(cause, "schedule.missed", workflow, "", schedule, settings, server, due_ms, now_ms)


def _alerts(
    cause: str,
    kind: AlertKind,
    workflow: str,
    run: str,
    item: str,
    settings: Settings,
    server: AlertSettings,
    at_ms: int,
    due_ms: int,
) -> tuple[AlertRow, ...]:
    """Return an alert for each address: those of the installation, and those of the workflow."""
    to: list[tuple[AlertChannel, str]] = []
    if server.email:
        to.append(("email", INSTALLATION))
    if server.webhook:
        to.append(("webhook", INSTALLATION))
    if settings.alerts is not None:
        if settings.alerts.email:
            to.append(("email", ",".join(settings.alerts.email)))
        if settings.alerts.webhook:
            to.append(("webhook", settings.alerts.webhook))
    return tuple(AlertRow(cause, channel, target, kind, workflow, run, item, at_ms, due_ms) for channel, target in to)


def notifications_of(
    wait: WaitRow, own: Sequence[tuple[str, bytes]], server: NotifySettings, remind_ms: int | None = None
) -> list[NotificationRow]:
    """Return the outbox of a wait that opens: (channel, sealed target) of its block, then the server's own addresses,
    and all of them once more if they are reminded. A row holds no text and no link: both are made when
    `executor.service.notifications` sends it."""
    asked = list(own)
    if wait.kind in ASK_PEOPLE:
        asked += [("email", SERVER_WIDE)] if server.email else []
        asked += [("webhook", SERVER_WIDE)] if server.webhook else []
    times = [wait.opened_at_ms] if remind_ms is None else [wait.opened_at_ms, max(remind_ms, wait.opened_at_ms + 1)]
    return [
        NotificationRow(
            run_id=wait.run_id,
            wait_id=wait.id,
            n=n,
            channel=channel,
            content=content,
            status="pending",
            attempts=0,
            created_at_ms=at_ms,
            due_at_ms=at_ms,
            error=NOT_CREATED if channel == JOB_CHANNEL else None,
        )
        for n, (at_ms, (channel, content)) in enumerate(product(times, asked), 1)
    ]

"""How much there is to do, in the model store."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from executor.kernel.store.topics.load import DatabaseLoad, Queue, WorkerLoad
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.schedules import ScheduleRow
from executor.kernel.store.writer import Stats

if TYPE_CHECKING:
    from tests.support.model_store.queue import ModelLimits
    from tests.support.model_store.store import _Run


class ModelLoad:
    """What ModelStore knows of it."""

    _open: dict[str, _Run]
    _until_ms: dict[str, int]
    _limits: ModelLimits
    _schedules: dict[str, ScheduleRow]
    stats = Stats()
    _notifications: dict[tuple[str, str, int], NotificationRow]

    async def load(self) -> DatabaseLoad:
        free = [run for run in self._open.values() if run.row.lease_owner is None]
        free = [run for run in free if run.row.id not in self._limits.blocked]
        due: dict[str, list[int]] = {}
        for run in free:
            if run.row.status != "waiting":
                due.setdefault(run.placement.pool, []).append(run.row.next_run_at_ms or 0)
        asleep = [run.row.next_run_at_ms for run in free if run.row.status == "waiting"]
        fires = [row.next_run_at_ms for row in self._schedules.values() if row.enabled]
        waits = [wait for run in self._open.values() for wait in run.waits.values() if wait.status == "pending"]
        pending = [row.due_at_ms for row in self._notifications.values() if row.status == "pending"]
        held = Counter(run.row.lease_owner for run in self._open.values())
        return DatabaseLoad(
            open=dict(sorted(Counter(run.row.status for run in self._open.values()).items())),
            queues=tuple(Queue(pool, len(times), min(times)) for pool, times in sorted(due.items())),
            timer_due_ms=min((at_ms for at_ms in asleep if at_ms is not None), default=None),
            schedule_due_ms=min((at_ms for at_ms in fires if at_ms is not None), default=None),
            waits=dict(sorted(Counter(wait.kind for wait in waits).items())),
            notifications=len(pending),
            notification_due_ms=min(pending, default=None),
            workers=tuple(WorkerLoad(name, until, held[name]) for name, until in sorted(self._until_ms.items())),
            bytes=0,
        )

"""Messages about waits on their way out: an outbox, written in the append that opens the wait.

9.  A message is there if and only if its wait is: both are one transaction.
10. `claim_notifications` gives a message to one caller; nobody else gets it before `lease_ms` have passed. Each claim
    is one attempt. A message whose wait is not open any more is never given out: it is `cancelled`.
11. `settle_notification` counts only for the attempt that was claimed last: who slept through its lease changes
    nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

NotificationStatus = Literal["pending", "sent", "failed", "cancelled"]


class NotificationRow(Struct, frozen=True):
    """One message to one address. `n` counts those of a wait from 1; `content` is JSON without secrets; `attempts` made
    so far; `due_at_ms`: not before this time, or, while it is being sent, until when nobody else tries."""

    run_id: str
    wait_id: str
    n: int
    channel: str
    content: bytes
    status: NotificationStatus
    attempts: int
    created_at_ms: int
    due_at_ms: int
    settled_at_ms: int | None = None
    error: str | None = None


class NotificationStore(Protocol):
    """The part of a Store that this topic adds."""

    async def claim_notifications(self, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
        """Pending messages that are due, oldest first: attempts + 1, due again when the lease is over. Before that,
        pending messages of waits that are closed become `cancelled`."""

    async def settle_notification(
        self,
        run_id: str,
        wait_id: str,
        n: int,
        attempt: int,
        status: NotificationStatus,
        now_ms: int,
        due_at_ms: int | None = None,
        error: str | None = None,
    ) -> bool:
        """How attempt number `attempt` ended; `pending` with `due_at_ms`: try again then. False, and nothing changed:
        another attempt was begun meanwhile."""

    async def next_notification_ms(self) -> int | None:
        """When the next message is due; None: there is none to send."""

    async def list_notifications(self, waits: Sequence[tuple[str, str]]) -> list[NotificationRow]:
        """All messages of these (run id, wait id), in the order of their numbers for each wait."""

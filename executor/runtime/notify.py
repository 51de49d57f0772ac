"""The notifications of a wait, written by the append that opens it. `executor.notifications` sends them.

A row holds no text and no link: both are made when it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from executor.runtime.answers import ASK_PEOPLE
from executor.services import NotifySettings
from executor.store.rows import NotificationRow, WaitRow

# Sealed JSON: the addresses are those of the server, as they are when the message goes out.
SERVER_WIDE: Final = orjson.dumps(['{"server":true}'])


def notifications_of(wait: WaitRow, own: Sequence[tuple[str, bytes]], server: NotifySettings) -> list[NotificationRow]:
    """The outbox of a wait that opens: (channel, sealed target) of its block, then the server's own addresses."""
    asked = list(own)
    if wait.kind in ASK_PEOPLE:
        asked += [("email", SERVER_WIDE)] if server.email else []
        asked += [("webhook", SERVER_WIDE)] if server.webhook else []
    return [
        NotificationRow(wait.run_id, wait.id, n, channel, content, "pending", 0, wait.opened_at_ms, wait.opened_at_ms)
        for n, (channel, content) in enumerate(asked, 1)
    ]

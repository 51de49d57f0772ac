"""Conditions of statements that several topics share.

`OPEN` and `CLAIMABLE_AT` must be, letter by letter, what the index `runs_claimable` says, and `ENDED` what `runs_ended`
says: else SQLite does not use them.
"""

from __future__ import annotations

OPEN = "status IN ('queued', 'running', 'waiting')"
ENDED = "status IN ('succeeded', 'failed', 'cancelled')"
CLAIMABLE_AT = "max(next_run_at_ms, coalesce(lease_until_ms, 0))"
BY_STATUS = " GROUP BY status"


def narrowed(*conditions: tuple[str, str | None]) -> tuple[str, list[str]]:
    """The conditions that have a value, joined, and the values."""
    used = [(condition, value) for condition, value in conditions if value is not None]
    return "".join(condition for condition, _ in used), [value for _, value in used]

"""Conditions of statements that several topics share.

`OPEN` and `CLAIMABLE_AT` must be, letter by letter, what the index `runs_claimable` says, and `ENDED` what `runs_ended`
says: else SQLite does not use them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

OPEN = "status IN ('queued', 'running', 'waiting')"
ENDED = "status IN ('succeeded', 'failed', 'cancelled')"
CLAIMABLE_AT = "max(next_run_at_ms, coalesce(lease_until_ms, 0))"
BY_STATUS = " GROUP BY status"


def narrowed(*conditions: tuple[str, str | None]) -> tuple[str, list[str]]:
    """The conditions that have a value, joined, and the values."""
    used = [(condition, value) for condition, value in conditions if value is not None]
    return "".join(condition for condition, _ in used), [value for _, value in used]


def any_of(parameter: str) -> str:
    """What stands behind IN for a list, which is the value of `parameter` as `as_list` writes it. The only place that
    knows how this database takes a list."""
    return f"(SELECT value FROM json_each({parameter}))"  # noqa: S608  (a parameter's name, never a value)


def as_list(values: Sequence[str | int]) -> str:
    return msgspec.json.encode(values).decode()

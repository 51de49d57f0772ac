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


def by_index(name: str) -> str:
    """Behind the name of a table: the index that SQLite would not choose by itself."""
    return f"INDEXED BY {name}"


def narrowed(*conditions: tuple[str, str | None]) -> tuple[str, list[str]]:
    """The conditions that have a value, joined, and the values."""
    used = [(condition, value) for condition, value in conditions if value is not None]
    return "".join(condition for condition, _ in used), [value for _, value in used]


def those_of(*conditions: tuple[str, object]) -> str:
    """The conditions that have a value, joined."""
    return "".join(condition for condition, value in conditions if value is not None)


def any_of(parameter: str) -> str:
    """What stands behind IN for a list, which is the value of `parameter` as `as_list` writes it. The only place that
    knows how this database takes a list."""
    return f"(SELECT value FROM json_each({parameter}))"  # noqa: S608  (a parameter's name, never a value)


def any_pair_of(parameter: str) -> str:
    """As `any_of`, for a list of pairs."""
    return f"(SELECT value ->> 0, value ->> 1 FROM json_each({parameter}))"  # noqa: S608  (a parameter's name)


def as_list(values: Sequence[str | int | Sequence[str]]) -> str:
    return msgspec.json.encode(values).decode()

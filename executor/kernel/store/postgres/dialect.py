"""The pieces of statements as PostgreSQL has them (see `kernel.store.dialect`), and the statements of its own."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

import re
from typing import Final

from executor.kernel.store.dialect import Texts

_PARAMETER = re.compile(r"(?<!:):(\w+)")
_TYPES: Final = {"n": "bigint", "t": "text"}


class _PsycopgTexts(Texts):
    """With parameters as psycopg has them."""

    def finished(self, sql: str) -> str:
        return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))


def _list(value: str, parameter: str) -> str:
    return f"(SELECT {value} FROM jsonb_array_elements_text(({parameter})::jsonb) AS listed(value))"


def _rows(parameter: str, types: str) -> str:
    row = ", ".join(f"(value ->> {n})::{_TYPES[type]}" for n, type in enumerate(types))
    return f"(SELECT {row} FROM jsonb_array_elements(({parameter})::jsonb) AS listed(value))"


def _events(head: str) -> str:
    elements = f"jsonb_array_elements(({head})::jsonb) WITH ORDINALITY AS counted(value, place)"
    return f"LATERAL (SELECT place - 1 AS key, value FROM {elements})"


# The server's clock. A session with the setting weft.time=caller (in the address: options=-c weft.time=caller) takes
# the times of its callers instead, as tests and simulations need it.
NOW_MS = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
NOW_US = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def lease_now(now: str) -> str:
    """Once for each statement."""
    return f"(SELECT CASE WHEN current_setting('weft.time', true) = 'caller' THEN {now} ELSE {NOW_MS} END)"


TEXTS = _PsycopgTexts(
    {
        "texts": lambda parameter: (
            f"(SELECT value FROM jsonb_array_elements_text(({parameter})::jsonb) AS listed(value))"
        ),
        "numbers": lambda parameter: (
            f"(SELECT value::bigint AS value FROM jsonb_array_elements_text(({parameter})::jsonb) AS listed(value))"
        ),
        "is_any": lambda parameter: (
            f"= ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(({parameter})::jsonb) AS listed(value)))"
        ),
        "rows": _rows,
        "index": lambda name: "",
        "has": lambda text, part: f"(strpos({text}, {part}) > 0)",
        "events": _events,
        # With a subselect, each part of the journals would be opened (sql/postgres/0001_start.sql).
        "number_of": lambda run: f"number_of({run})",
        # A run may get another number while this statement waits for its head; its id stays.
        "head_of": lambda run: f"id = {run}",
        # Every append writes it, as that is its fence.
        "database_bytes": lambda: "pg_database_size(current_database())",
        "last_seq": lambda: "heads.seq",
        "lease_now": lease_now,
        # Two sessions that look for work find different rows, and none waits.
        # A row that is deleted meanwhile would orphan what is being written; changes of it are not in the way.
        "keep_there": lambda: "FOR KEY SHARE",
        "for_each": lambda: (
            "CROSS JOIN LATERAL (SELECT q.fair, q.priority, q.due_ms, q.id, q.n, q.limits, q.rates, q.cancel_n"
        ),
        "try_lock": lambda text: f"pg_try_advisory_xact_lock(hashtextextended({text}, 0))",
        "end_each": lambda: "FOR NO KEY UPDATE SKIP LOCKED) AS h",
        "take_alone": lambda: "FOR UPDATE",
        "kept_workflow": lambda name: (
            f"coalesce((SELECT workflow FROM active_versions WHERE workflow = {name} FOR KEY SHARE), {name})"
        ),
        "skip_locked": lambda table: f"FOR NO KEY UPDATE OF {table} SKIP LOCKED",
    }
)

LOCK_HEAD = "SELECT 1 FROM heads WHERE id = %(run)s FOR NO KEY UPDATE"
ADD_BATCH = """
INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
VALUES (%(n)s, %(seq)s, %(first_seq)s, %(output_bytes)s, %(checksum)s, %(head)s, %(payload)s)"""
ADD_FIRST_BATCH = ADD_BATCH.replace("%(n)s", "(SELECT n FROM run_details WHERE id = %(run)s)")
# The fence of an append: the head is written only as its owner knows it, and locked from then on. `inbox_n` of the row
# that was locked shows whether the inbox may have anything.
ADVANCE_HEAD = """
UPDATE heads SET seq = %(seq)s, stalls = 0 WHERE id = %(run)s AND epoch = %(epoch)s AND seq = %(after)s
RETURNING n, inbox_n"""
# The same with its only batch, as one statement; bytes are sent as they are, and not as text.
APPEND_EVENTS_OF_ONE = """
WITH fenced AS (
    UPDATE heads SET seq = %(seq)s, stalls = 0 WHERE id = %(run)s AND epoch = %(epoch)s AND seq = %(after)s
    RETURNING n, inbox_n),
written AS (
    INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
    SELECT n, %(seq)s::bigint, %(first_seq)s::bigint, %(output_bytes)s::bigint, %(checksum)s::bigint, %(head)s::text,
           %(payload)b::bytea
      FROM fenced)
SELECT %(run)s::text, inbox_n FROM fenced"""

# The writer's own row. With it a group that was committed is known by its number.
ADD_WRITER = "INSERT INTO writers (id, last_group) VALUES (%(id)s, 0) ON CONFLICT DO NOTHING"
# Divides by zero when there is no such row: what follows in the pipeline is not executed then.
MARK_GROUP = """
WITH mark AS (UPDATE writers SET last_group = %(group)s, since = clock_timestamp() WHERE id = %(id)s RETURNING 1)
SELECT 1 / count(*) FROM mark"""
# Waits until the session that may still have the row is over.
LAST_GROUP = "SELECT last_group FROM writers WHERE id = %(id)s FOR UPDATE"
DELETE_WRITER = "DELETE FROM writers WHERE id = %(id)s"
# Rows of processes that were killed. One that was idle for so long makes its row again.
FORGET_OLD_WRITERS = "DELETE FROM writers WHERE since < clock_timestamp() - interval '30 days'"

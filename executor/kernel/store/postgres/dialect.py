"""The statements that only PostgreSQL has."""

from __future__ import annotations

from typing import Final

from executor.kernel.store.statements import PIECES, Texts

TEXTS = Texts("postgres")
lease_now: Final = PIECES["lease_now"][1].format
NOW_US = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

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

# The writer's own row. With it a group that was committed is known by its number.
ADD_WRITER = "INSERT INTO writers (id, last_group) VALUES (%(id)s, 0) ON CONFLICT DO NOTHING"
# Divides by zero when there is no such row, or when the group was closed: what follows is not executed then.
MARK_GROUP = """
WITH mark AS (
    UPDATE writers SET last_group = %(group)s, since = clock_timestamp() WHERE id = %(id)s AND last_group < %(group)s
    RETURNING 1)
SELECT 1 / count(*) FROM mark"""
# Waits until the session that may still have the row is over. A group that is not on disk then never will be: the
# server may have it unread, and reads what a session sent before it was lost.
CLOSE_GROUP = "UPDATE writers SET last_group = %(group)s + 1 WHERE id = %(id)s AND last_group < %(group)s"
LAST_GROUP = "SELECT last_group FROM writers WHERE id = %(id)s"
DELETE_WRITER = "DELETE FROM writers WHERE id = %(id)s"
# Rows of processes that were killed. One that was idle for so long makes its row again.
FORGET_OLD_WRITERS = "DELETE FROM writers WHERE since < clock_timestamp() - interval '30 days'"

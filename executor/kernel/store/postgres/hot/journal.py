"""Rows of the journal that a statement of the hot kinds adds, and how they prove that it is on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from executor.kernel.store.postgres.hot.kind import Columns, Session
from executor.kernel.store.tx import Batch, Row

BATCHES = Columns("b", run="t", seq="n", first_seq="n", output_bytes="n", checksum="n", head="t", payload="b")
# The source of the runs' numbers follows this.
ADD_BATCHES = f"""
INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
    SELECT owned.n, b.seq, b.first_seq, b.output_bytes, b.checksum, b.head, b.payload
      FROM {BATCHES.table} JOIN """
# Which of these batches are on disk, by the numbers and checksums of their last events.
BATCHES_THERE = """
SELECT d.id, coalesce(h.inbox_n, 0)
  FROM unnest(%(runs)s::text[], %(seqs)s::bigint[], %(checksums)s::bigint[]) AS wanted (id, seq, checksum)
  JOIN run_details AS d ON d.id = wanted.id
  JOIN batches AS b ON b.n = d.n AND b.seq = wanted.seq AND b.checksum = wanted.checksum
  LEFT JOIN heads AS h ON h.n = d.n"""


class Journals:
    """The batches to add to the journal of each of these runs."""

    def __init__(self, batches: Iterable[tuple[str, Sequence[Batch]]]) -> None:
        self._batches = list(batches)

    def last(self) -> list[int]:
        """Return the number of the last event of each run."""
        return [each[-1].seq for _, each in self._batches]

    def values(self) -> dict[str, list[Any]]:
        return BATCHES.values([(run, *batch) for run, each in self._batches for batch in each])

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        values = {
            "runs": [run for run, _ in self._batches],
            "seqs": self.last(),
            "checksums": [each[-1].checksum for _, each in self._batches],
        }
        return session.execute(BATCHES_THERE, values)

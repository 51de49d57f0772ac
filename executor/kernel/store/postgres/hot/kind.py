"""Items of one kind that are one statement, whose values are arrays; and the rows of the journal that it adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import psycopg

from executor.kernel.store.batches import batches_of
from executor.kernel.store.postgres.batch import Answer, Array, Batched, array_of
from executor.kernel.store.postgres.connection import Tx
from executor.kernel.store.run_rows import Record
from executor.kernel.store.statements import Row
from executor.kernel.store.writer import Outcome

T = TypeVar("T")
Session = psycopg.Connection[Row]
Asked = Tx | Batched
Answered = psycopg.Cursor[Row] | Answer

TYPES: Final = {"n": "bigint", "t": "text", "b": "bytea"}
# Rows of heads, in order, before anything else of the group changes one. What depends on an inbox is looked at after
# this, so it sees each message that is committed.
LOCK_HEADS = "SELECT 1 FROM heads WHERE id = ANY(%(runs)s::text[]) ORDER BY id FOR NO KEY UPDATE"


class Columns:
    """Rows as a table of a statement: `name (id, seq)`, of an array for each column. `types` has a letter of TYPES for
    each. They are sent in the binary form."""

    def __init__(self, name: str, **types: str) -> None:
        arrays = ", ".join(f"%({name}_{column})s::{TYPES[type]}[]" for column, type in types.items())
        self.table = f"unnest({arrays}) AS {name} ({', '.join(types)})"
        self._types = [(f"{name}_{column}", TYPES[type]) for column, type in types.items()]

    def values(self, rows: Iterable[Sequence[Any]]) -> dict[str, Array]:
        columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(self._types)
        return {key: array_of(type, column) for (key, type), column in zip(self._types, columns, strict=True)}


class Kind(ABC, Generic[T]):
    """One kind of item, written by one statement. `entries` has the change of each item by run, each run once, with the
    number of the item in its group."""

    locks = False  # whether LOCK_HEADS comes first

    def __init__(self, entries: Mapping[str, tuple[int, T]]) -> None:
        self.runs = self.in_order(entries)
        self.numbers = [entries[run][0] for run in self.runs]
        self.asked = [entries[run][1] for run in self.runs]

    @staticmethod
    def in_order(entries: Mapping[str, tuple[int, T]]) -> list[str]:
        """Return the ids of the runs, as all processes sort them: no two groups wait for one another."""
        return sorted(entries)

    @abstractmethod
    def write(self, tx: Asked) -> Answered:
        """Its answer has a row for each run for which it was done, which begins with its id."""

    @abstractmethod
    def look(self, session: Session) -> psycopg.Cursor[Row]:
        """Read what `write` would have returned, after its answer was lost and the group is known to be on disk."""

    def outcomes(self, rows: Sequence[Row]) -> list[Outcome | None]:
        """Return the outcome of each run. It is None if the item has to be committed by itself, which raises the
        reason."""
        done = {row[0] for row in rows}
        return [self.outcome(asked, run in done) for run, asked in zip(self.runs, self.asked, strict=True)]

    def outcome(self, asked: T, done: bool) -> Outcome | None:
        return Outcome(done)


BATCHES = Columns("b", run="t", seq="n", first_seq="n", output_bytes="n", checksum="n", head="t", payload="b")
# The source of the runs' numbers follows this.
ADD_BATCHES = f"""
INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
    SELECT owned.n, b.seq, b.first_seq, b.output_bytes, b.checksum, b.head, b.payload
      FROM {BATCHES.table} JOIN """
# The batches among these that are on disk, by the numbers and checksums of their last events.
BATCHES_THERE = """
SELECT d.id, coalesce(h.inbox_n, 0)
  FROM unnest(%(runs)s::text[], %(seqs)s::bigint[], %(checksums)s::bigint[]) AS wanted (id, seq, checksum)
  JOIN run_details AS d ON d.id = wanted.id
  JOIN batches AS b ON b.n = d.n AND b.seq = wanted.seq AND b.checksum = wanted.checksum
  LEFT JOIN heads AS h ON h.n = d.n"""


class JournalKind(Kind[T]):
    """A kind whose items add events to the journal of their run."""

    def __init__(self, entries: Mapping[str, tuple[int, T]]) -> None:
        super().__init__(entries)
        self.batches = [batches_of(run, *self.events(asked)) for run, asked in zip(self.runs, self.asked, strict=True)]
        self.last = [each[-1].seq for each in self.batches]

    @staticmethod
    @abstractmethod
    def events(asked: T) -> tuple[int, Sequence[Record]]:
        """Return the events of an item, after the number of the one before them."""

    def batch_values(self) -> dict[str, Array]:
        return BATCHES.values(
            [(run, *batch) for run, each in zip(self.runs, self.batches, strict=True) for batch in each]
        )

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        checksums = [each[-1].checksum for each in self.batches]
        return session.execute(BATCHES_THERE, {"runs": self.runs, "seqs": self.last, "checksums": checksums})

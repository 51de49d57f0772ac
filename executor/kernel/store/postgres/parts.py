"""Reads which parts the journals have (`days.py` makes and drops them). Without psycopg: `weft doctor` reads them
too."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from executor.kernel.store.statements import Row

# Numbers of runs: as many as a part has room for. A part begins at a multiple, which stands for a day.
WIDTH: Final = 1 << 40
# The comment of a part that may have journals whose runs are deleted already.
RETIRING: Final = "weft: retiring"
SEQUENCE: Final = "run_details_n_seq"

PARTS: Final = """
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid), coalesce(obj_description(c.oid, 'pg_class'), ''),
       i.inhdetachpending
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
 WHERE i.inhparent = to_regclass('batches') ORDER BY c.relname"""
# Parts that a process detached before it was killed.
LOOSE: Final = """
SELECT c.relname FROM pg_class AS c
 WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('batches')) AND c.relkind = 'r'
   AND c.relname ~ '^batches_(first|[0-9]{8})$'
   AND NOT EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhrelid = c.oid) ORDER BY c.relname"""
# Tables whose journals may be without a run.
RETIRED: Final = f"""
SELECT i.inhrelid FROM pg_inherits AS i
 WHERE i.inhparent = to_regclass('batches') AND obj_description(i.inhrelid, 'pg_class') = '{RETIRING}'"""
_BOUND = re.compile(r"FOR VALUES FROM \('?(-?\d+|MINVALUE)'?\) TO \('?(-?\d+)'?\)")


class Part(Struct, frozen=True):
    """The part of runs with numbers from `lo` to below `hi`; `lo` is None for negative ones. `pending`: it is detached
    when older transactions are over, or a process was killed as it waited for that."""

    name: str
    lo: int | None
    hi: int
    retiring: bool
    pending: bool


def part_of(row: Row) -> Part:
    name, bound, comment, pending = row
    found = _BOUND.fullmatch(bound)
    assert found is not None, bound
    lo = None if found[1] == "MINVALUE" else int(found[1])
    return Part(name, lo, int(found[2]), comment == RETIRING, bool(pending))


def name_of_day(day: int) -> str:
    """`day`: since 1970, in UTC."""
    return f"batches_{date(1970, 1, 1) + timedelta(days=day):%Y%m%d}"


def begin(name: str, lo: int, hi: int) -> tuple[str, str]:
    """Statements, in one transaction. Attaching lets others read and write."""
    return (
        f"CREATE TABLE {name} (LIKE batches INCLUDING ALL)",
        f"ALTER TABLE batches ATTACH PARTITION {name} FOR VALUES FROM ({lo}) TO ({hi})",
    )

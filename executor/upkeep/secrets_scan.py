"""Are these texts anywhere in the database (I11)? Looks into every text and blob column of every table, in every
encoding a value is likely to have travelled in. The list of encodings is on purpose not that of
`executor.values.redact`: this is here to notice what the redactor misses."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Collection, Iterator
from urllib.parse import quote, quote_plus

from executor.upkeep.findings import Finding

REMEDY = "find the block that recorded it (`weft events {run}`), rotate the secret and delete the run"


def scan(db: sqlite3.Connection, secrets: Collection[str], run: str | None = None) -> Iterator[Finding]:
    """One finding per table, column, secret and run. The secret itself is not in it: findings are printed."""
    for number, secret in enumerate(secrets, 1):
        if secret:
            for table, columns, run_column in _tables(db):
                if run is None or run_column is not None:
                    yield from _scan_table(db, table, columns, run_column, spellings(secret), number, run)


def spellings(secret: str) -> list[bytes]:
    """As it is, in JSON, in a URL, as hexadecimal digits, and inside a longer base64 text (at each of its offsets)."""
    data = secret.encode()
    found = {
        data,
        json.dumps(secret)[1:-1].encode(),
        json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
        quote(secret, safe="").encode(),
        quote_plus(secret).encode(),
        data.hex().encode(),
    }
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            text = encode(b"\0" * offset + data).rstrip(b"=")
            # The first characters depend on the bytes before the secret, the last one on those behind it.
            inner = text[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6]
            if len(inner) >= 8:
                found.add(inner)
    return sorted(found)


def _tables(db: sqlite3.Connection) -> Iterator[tuple[str, list[str], str | None]]:
    """Name, columns that can hold text, and the SQL that gives the run's id, if there is one."""
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    for (table,) in db.execute(names).fetchall():
        columns = db.execute(f'PRAGMA table_info("{table}")').fetchall()
        texts = [name for _, name, kind, *_ in columns if kind.upper() != "INTEGER"]
        by_id = table in ("run_details", "heads")
        run_column = '"id"' if by_id else '"run_id"' if any(c[1] == "run_id" for c in columns) else None
        if table == "batches":
            run_column = "(SELECT id FROM run_details AS d WHERE d.n = batches.n)"
        if texts:
            yield table, texts, run_column


def _scan_table(
    db: sqlite3.Connection,
    table: str,
    columns: list[str],
    run_column: str | None,
    wanted: list[bytes],
    number: int,
    run: str | None,
) -> Iterator[Finding]:
    of_run = run_column or "''"
    where = f" AND {run_column} = ?" if run is not None else ""
    for column in columns:
        found = " OR ".join([f'instr(CAST("{column}" AS BLOB), ?) > 0'] * len(wanted))
        query = f'SELECT {of_run}, count(*) FROM "{table}" WHERE ({found}){where} GROUP BY 1'  # noqa: S608 - schema
        for id, count in db.execute(query, (*wanted, *([run] if run is not None else []))):
            what = f"secret {number} is in {count} rows of {table}.{column}"
            yield Finding("I11", what, REMEDY.format(run=id or "RUN"), id)

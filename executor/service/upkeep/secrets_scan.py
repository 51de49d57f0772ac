"""Searches the database for texts (I11): in every text and blob column of every table, in every encoding that a value
is likely to have travelled in. The list of encodings is on purpose not that of `kernel.values.redact`: this finds
what the redactor misses.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator
from urllib.parse import quote, quote_plus

from executor.kernel.store.reading import Column, Reading
from executor.service.upkeep.findings import Finding

REMEDY = "find the block that recorded it (`weft events {run}`), rotate the secret and delete the run"
_RECENT = "run_details WHERE finished_at_ms IS NULL OR finished_at_ms >= :since"


def scan(db: Reading, secrets: Collection[str], run: str | None = None, since_ms: int = 0) -> Iterator[Finding]:
    """Yield one finding per table, column, secret and run. The secret itself is not in it: findings are printed.
    `since_ms`: search only runs that are open or have ended since."""
    for number, secret in enumerate(secrets, 1):
        parts = {f"part_{n}": part for n, part in enumerate(spellings(secret))} if secret else {}
        for table, columns, run_column in _tables(db) if parts else ():
            if run is not None and run_column is None:
                continue
            where = f" AND {run_column} = :run" if run is not None else _since(table, run_column, since_ms)
            for column in columns:
                has = " OR ".join(column.has.format(f":{name}") for name in parts)
                id_or_none = run_column or "''"
                query = f'SELECT {id_or_none}, count(*) FROM "{table}" WHERE ({has}){where} GROUP BY 1'  # noqa: S608 - schema
                for id, count in db.rows(query, {**parts, "run": run, "since": since_ms}):
                    what = f"secret {number} is in {count} rows of {table}.{column.name}"
                    yield Finding("I11", what, REMEDY.format(run=id or "RUN"), id)


def spellings(secret: str) -> list[bytes]:
    """Return the secret as it is, in JSON, in a URL, as hexadecimal digits, and inside a longer base64 text (at each of
    its offsets)."""
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
            # The first characters depend on the bytes before the secret, the last one on those after it.
            inner = text[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6]
            if len(inner) >= 8:
                found.add(inner)
    return sorted(found)


def _tables(db: Reading) -> Iterator[tuple[str, list[Column], str | None]]:
    """Yield name, columns that can hold text, and the SQL for the run's id, if there is one."""
    for table, columns in db.tables().items():
        texts = db.texts(table)
        by_id = table in ("run_details", "heads")
        run_column = '"id"' if by_id else '"run_id"' if "run_id" in columns else None
        if table in ("batches", "snapshots"):
            run_column = f"(SELECT id FROM run_details AS d WHERE d.n = {table}.n)"  # noqa: S608 - one of these two
        if texts:
            yield table, texts, run_column


def _since(table: str, run_column: str | None, since_ms: int) -> str:
    if not since_ms:
        return ""
    if table in ("batches", "snapshots"):
        return f" AND n IN (SELECT n FROM {_RECENT})"  # noqa: S608 - a constant
    if run_column is not None:
        return f" AND {run_column} IN (SELECT id FROM {_RECENT})"  # noqa: S608 - constants
    return " AND used_at_ms >= :since" if table in ("plans", "documents", "blobs") else ""

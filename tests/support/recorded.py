"""What is recorded in `tests/golden`: databases as they were left, and the facts that led there."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

HERE = Path(__file__).parents[1] / "golden"
SCHEMAS = sorted(int(path.name.split(".")[0].removeprefix("schema_")) for path in HERE.glob("schema_*.sql.gz"))


class Told(Struct, frozen=True, array_like=True):
    """A fact that the core was told about `run` after event `seq`, and how many events it led to."""

    run: str
    seq: int
    type: str
    fact: Any
    events: int


def restore(schema: int, folder: Path) -> Path:
    """The database in `folder`, as a killed process leaves it: everything it wrote is in the WAL still."""
    folder.mkdir(parents=True, exist_ok=True)
    made, db = folder / "made.db", folder / "weft.db"
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA wal_autocheckpoint = 0").fetchone()
        connection.executescript(gzip.decompress((HERE / f"schema_{schema}.sql.gz").read_bytes()).decode())
        for end in ("", "-wal"):
            shutil.copy(f"{made}{end}", f"{db}{end}")
            os.chmod(f"{db}{end}", 0o600)
    made.unlink()
    return db


def facts(schema: int) -> list[Told]:
    lines = gzip.decompress((HERE / f"schema_{schema}.facts.gz").read_bytes()).splitlines()
    return [msgspec.json.decode(line, type=Told) for line in lines]


def runs(db: Path) -> dict[str, str]:
    """Ids by idempotency key, which is the name of the run in `play.py`; children have none and are left out."""
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        return dict(connection.execute("SELECT idempotency_key, id FROM runs WHERE idempotency_key IS NOT NULL"))


def contents(db: Path) -> tuple[int, list[str]]:
    """The version, and everything else as text, sorted: a copy may have it in another order. Opens the file for reading
    only."""
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], db
        return version, sorted(connection.iterdump())

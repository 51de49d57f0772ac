"""What must be true of the file after a scenario was broken off and played to its end."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from executor.kernel.store.migrate import packaged_migrations, version_of
from executor.kernel.store.sqlite.reading import open_read_only, open_reading
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from tests.support.place import Place, as_file


def told(acks: Path) -> list[tuple[str, Any]]:
    """What the client was told, in order. A last line that is cut off was not told."""
    lines = acks.read_bytes().split(b"\n")[:-1] if acks.exists() else []
    return [tuple(orjson.loads(line)) for line in lines]


def violations(place: Place, acks: Path, complete: bool) -> list[str]:
    """Empty when all is well. `complete`: the scenario was played to its end, so nothing may be under way."""
    with as_file(place) as db:
        return _violations(db, told(acks), complete)


def _violations(db: Path, known: list[tuple[str, Any]], complete: bool) -> list[str]:
    if not has_schema(db):  # it was killed while it made its first tables
        return [f"{what} {value} was acknowledged and is not there" for what, value in known]
    runs = {key: run for what, value in known if what == "run" for key, run in [value]}
    found = [f"{f.invariant} {f.what} (run {f.run} {f.node})" for f in _findings(db, list(runs.values()))]
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        found += _lost(connection, known)
        if complete:
            found += _left_over(connection)
    return found


def has_schema(db: Path) -> bool:
    """All of it. Raises sqlite3.Error. A rollback journal beside the file is that of the switch to the WAL, which comes
    before any table; only who may write can read such a file."""
    if db.with_name(db.name + "-journal").exists():
        return False
    with closing(open_read_only(db)) as connection:
        return version_of(connection) == packaged_migrations()[-1].number


def _findings(db: Path, acknowledged: list[str]) -> list[Any]:
    with closing(open_reading(db)) as connection:
        return list(check(connection, evidence=Evidence(acknowledged=acknowledged)))


def _lost(db: sqlite3.Connection, known: list[tuple[str, Any]]) -> list[str]:
    """What was acknowledged, and is not there."""
    lost = []
    keys: dict[str, str] = {}
    for what, value in known:
        match what:
            case "workflow":
                there = _one(db, "SELECT count(*) FROM workflows WHERE name = ? AND version = ?", *value)
            case "run":
                key, run = value
                if keys.setdefault(key, run) != run:
                    lost.append(f"key {key!r} was given two runs: {keys[key]} and {run}")
                there = _one(db, "SELECT count(*) FROM runs WHERE id = ? AND idempotency_key = ?", run, key)
            case "signal":
                there = _one(db, "SELECT count(*) FROM signals WHERE run_id = ?", value)
            case "answer":
                there = _one(
                    db, "SELECT count(*) FROM waits WHERE run_id = ? AND node = 'ask' AND status = 'answered'", value
                )
            case "cancel":
                there = _one(
                    db,
                    "SELECT (SELECT count(*) FROM inbox WHERE run_id = ?1) + (SELECT count(*) FROM events"
                    " WHERE run_id = ?1 AND type = 'run.cancelling')",
                    value,
                )
            case "checkpoint":
                there = _one(
                    db,
                    "SELECT count(*) FROM checkpoints WHERE run_id = ? AND node = ? AND CAST(data AS TEXT) + 0 >= ?",
                    *value,
                )
            case "effect":
                run, said = value
                there = _one(
                    db,
                    "SELECT count(*) FROM events WHERE run_id = ? AND node = 'second' AND type = 'node.succeeded'"
                    " AND instr(CAST(output AS TEXT), ?)",
                    run,
                    said,
                )
            case "events":
                there = _one(db, "SELECT count(*) FROM runs WHERE id = ? AND seq >= ?", *value)
            case "ended":
                there = _one(db, "SELECT count(*) FROM runs WHERE id = ? AND status = ?", *value)
            case "revised":
                there = _one(db, "SELECT count(*) FROM drafts WHERE id = ? AND rev >= ?", *value)
            case "delivered":
                there = _one(db, "SELECT count(*) FROM deliveries WHERE id = ?", value)
            case _:
                continue
        if there < 1:
            lost.append(f"{what} {value} was acknowledged and is not there")
    return lost


def _left_over(db: sqlite3.Connection) -> list[str]:
    open_runs = db.execute("SELECT id, workflow, status FROM runs WHERE finished_at_ms IS NULL").fetchall()
    more = _one(db, "SELECT count(*) FROM runs WHERE workflow = 'child' AND parent_run_id IS NOT NULL")
    # main, and the fork: each calls once, however often their processes died
    twice = [] if more == 2 else [f"{more} child runs instead of 2"]
    deliveries = _one(db, "SELECT count(*) FROM deliveries")
    if deliveries != 1:
        twice.append(f"{deliveries} deliveries instead of 1")
    return [f"run {run} of {workflow} is {status} at the end" for run, workflow, status in open_runs] + twice


def _one(db: sqlite3.Connection, query: str, *values: Any) -> int:
    (value,) = db.execute(query, values).fetchone()
    assert isinstance(value, int)
    return value

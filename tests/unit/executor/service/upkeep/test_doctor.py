"""The doctor's report: what it asks, what it says about the file and the machine, and when it says that all is well."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.sqlite.reading import open_reading
from executor.service.upkeep import conditions, doctor
from executor.service.upkeep.doctor import Report, examine
from executor.service.upkeep.findings import Evidence
from tests.unit.executor.service.upkeep.conftest import Copy

DAY_MS = 86_400_000


def report(copy: Copy, run: str | None = None, later_ms: int = 0, evidence: Evidence | None = None) -> Report:
    with closing(open_reading(copy.path)) as db:
        return examine(db, time.time_ns() // 1_000_000 + later_ms, run=run, evidence=evidence)


def level(found: Report, name: str) -> str:
    (condition,) = (condition for condition in found.conditions if condition.name == name)
    return condition.level


def test_a_sound_database_is_healthy(copy: Copy) -> None:
    found = report(copy)
    assert found.healthy and found.findings == ()
    assert found.runs == {"succeeded": 4, "failed": 1, "waiting": 3, "cancelled": 1}
    assert found.events > 50
    not_asked = [promise.id for promise in found.promises if promise.findings is None]
    assert not_asked == ["I10", "I11"]  # they need what only the world outside knows
    assert {promise.findings for promise in found.promises} == {0, None}
    assert all(
        level(found, name) == "ok" for name in ("permissions", "WAL", "schema", "leases", "due runs", "messages")
    )


def test_a_broken_promise_is_counted_and_reported(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET status = 'failed' WHERE id = ?", copy.run["hello"])
    found = report(copy)
    assert not found.healthy
    assert [p.id for p in found.promises if p.findings] == ["I2"]
    assert [finding.run for finding in found.findings] == [copy.run["hello"]]


def test_one_run_alone(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET status = 'failed' WHERE id = ?", copy.run["hello"])
    assert report(copy, copy.run["loops"]).healthy
    assert not report(copy, copy.run["hello"]).healthy
    with pytest.raises(LookupError):
        report(copy, "unknown")


def test_secrets_are_looked_for_when_they_are_known(copy: Copy) -> None:
    found = report(copy, evidence=Evidence(secrets=["weft/1"]))  # what every document begins with
    assert {finding.invariant for finding in found.findings} == {"I11"}


def test_many_findings_are_counted_but_not_all_listed(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "FINDINGS_MAX", 2)
    copy.spoil("UPDATE runs SET status = iif(status = 'failed', 'cancelled', 'failed')")
    found = report(copy)
    assert len(found.findings) == 2
    assert sum(promise.findings or 0 for promise in found.promises) > 5


def test_no_server_at_work_is_a_warning(copy: Copy) -> None:
    copy.spoil(
        "UPDATE runs SET status = 'running', lease_owner = 'w', lease_until_ms = 1, next_run_at_ms = 1 WHERE id = ?",
        copy.run["asking"],
    )
    found = report(copy, later_ms=2 * DAY_MS)  # the sleeping run is due as well
    assert level(found, "leases") == "warning" and level(found, "due runs") == "warning"
    assert level(report(copy), "due runs") == "ok"
    with closing(sqlite3.connect(copy.path)) as db, db:
        db.execute(
            "INSERT INTO notifications VALUES (?, 'ask!1', 1, 'email', x'7b7d', 'pending', 0, 1, 1, NULL, NULL)",
            (copy.run["asking"],),
        )
    assert level(report(copy), "messages") == "warning"
    copy.spoil("UPDATE notifications SET status = 'failed'")
    assert level(report(copy), "failed messages") == "warning"


def test_schedules_that_do_not_run_are_a_warning(copy: Copy) -> None:
    with closing(sqlite3.connect(copy.path)) as db, db:
        db.execute(
            """INSERT INTO schedules (id, workflow, cron, tz, input, enabled, overlap, catch_up, origin, next_run_at_ms,
                                      error, created_at_ms, updated_at_ms)
               VALUES ('s', 'hello', '* * * * *', 'UTC', x'7b7d', 1, 'skip', 'one', 'api', 1, 'no', 1, 1)"""
        )
    found = report(copy)
    assert level(found, "schedules") == "warning" and level(found, "failing schedules") == "warning"
    copy.spoil("UPDATE schedules SET enabled = 0")
    assert level(report(copy), "schedules") == "ok"


def test_warnings_do_not_make_it_ill(copy: Copy) -> None:
    copy.path.chmod(0o644)
    found = report(copy)
    assert level(found, "permissions") == "warning" and found.healthy
    assert any("chmod 600" in condition.fix for condition in found.conditions)


def test_little_room_and_a_large_wal_are_warnings(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "DISK_FREE_MIN_BYTES", 1 << 60)
    monkeypatch.setattr(conditions, "WAL_LARGE_BYTES", 1000)
    # an open writer whose WAL was not written back yet
    with closing(sqlite3.connect(copy.path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 0").fetchone()
        db.execute("UPDATE run_details SET draft_rev = 1")
        found = report(copy)
    assert level(found, "disk") == "warning" and level(found, "WAL") == "warning"


@pytest.mark.parametrize(("by", "expected"), [(1, "error"), (-1, "warning")])
def test_another_schema_is_reported_and_nothing_else_is_asked(copy: Copy, by: int, expected: str) -> None:
    newest = packaged_migrations()[-1].number
    with closing(sqlite3.connect(copy.path)) as db, db:
        db.execute(f"PRAGMA user_version = {newest + by}")
    found = report(copy)
    assert level(found, "schema") == expected
    assert found.healthy == (expected == "warning")
    assert all(promise.findings is None for promise in found.promises)


def test_what_is_no_database_cannot_be_examined(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    path.write_text("a text that is longer than the header of a database " * 10)
    with pytest.raises(sqlite3.DatabaseError), closing(open_reading(path)) as db:
        examine(db, 0)

"""The questions asked of a database after everything is over. Reads the database itself, with no server between."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.place import Place, as_file

# One of these, once, is what becomes of a node key. A start sentinel has region.sized, an end sentinel region.exited.
DECISIONS = ("node.succeeded", "node.failed", "node.skipped", "region.sized", "region.exited")


class Journal:
    """Of a database that no process has open. All rows of the tables, `events` by run and in order of seq."""

    def __init__(self, place: Place) -> None:
        with as_file(place) as db, closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
            self.integrity = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            self.dangling = connection.execute("PRAGMA foreign_key_check").fetchall()
            connection.row_factory = sqlite3.Row
            self.runs = {row["id"]: row for row in connection.execute("SELECT * FROM runs")}
            self.waits = {(row["run_id"], row["id"]): row for row in connection.execute("SELECT * FROM waits")}
            self.inbox = connection.execute("SELECT * FROM inbox").fetchall()
            # The keys of runs of schedules, once for each time that a due time was dealt with; the last ones are there.
            self.fires = [
                f"cron:{row['schedule_id']}:{row['due_ms']}" for row in connection.execute("SELECT * FROM fires")
            ]
            self.events: dict[str, list[sqlite3.Row]] = {run: [] for run in self.runs}
            for row in connection.execute("SELECT * FROM events ORDER BY run_id, seq"):
                self.events[row["run_id"]].append(row)

    def started(self, run: str) -> Counter[str]:
        """How often each node key was started."""
        return Counter(key_of(row) for row in self.events[run] if row["type"] == "node.started")

    def lost_attempts(self) -> Counter[tuple[str, str]]:
        """By run and node key: attempts whose process was killed."""
        return Counter(
            (run, key_of(row))
            for run, rows in self.events.items()
            for row in rows
            if row["type"] == "retry.scheduled" and data_of(row)["error"]["code"] == "attempt_lost"
        )

    # --- the questions

    def is_sound(self) -> None:
        assert self.integrity == ["ok"]
        assert self.dangling == []

    def all_succeeded(self) -> None:
        """Every run is over and holds nothing any more."""
        unwell = {
            run: (row["status"], row["error"], [(e["seq"], e["type"], key_of(e)) for e in self.events[run]][-12:])
            for run, row in self.runs.items()
            if row["status"] != "succeeded"
        }
        assert not unwell, unwell
        assert {(row["lease_owner"], row["next_run_at_ms"]) for row in self.runs.values()} == {(None, None)}
        assert not self.inbox, "an acknowledged fact was never taken"
        assert {row["status"] for row in self.waits.values()} <= {"answered", "expired"}

    def is_dense(self) -> None:
        for run, rows in self.events.items():
            assert [row["seq"] for row in rows] == list(range(1, self.runs[run]["seq"] + 1)), run
            assert rows[0]["type"] == "run.started"
            assert [row["seq"] for row in rows if row["type"] == "run.finished"] == [rows[-1]["seq"]], run

    def results_are_recorded_once(self) -> None:
        for run, rows in self.events.items():
            decisions = Counter(key_of(row) for row in rows if row["type"] in DECISIONS)
            assert set(decisions.values()) == {1}, (run, decisions.most_common(3))
            started = [(key_of(row), row["attempt"]) for row in rows if row["type"] == "node.started"]
            assert {key for key, _ in started} <= set(decisions), run
            # An end sentinel is asked after every iteration; everything else has numbered attempts.
            plain = Counter(one for one in started if not one[0].partition("@")[0].endswith(":end"))
            assert all(count == 1 for count in plain.values()), (run, plain.most_common(3))
            for key in {key for key, _ in plain}:
                attempts = sorted(attempt for known, attempt in plain if known == key)
                assert attempts == list(range(1, len(attempts) + 1)), (run, key, attempts)

    def no_call_to_itself_failed(self) -> None:
        """A server that starts takes calls before it runs anything, one that stops takes them until nothing runs: what
        its own runs call is there whenever they are."""
        for run, rows in self.events.items():
            errors = [data_of(row)["error"] for row in rows if row["type"] in ("retry.scheduled", "node.failed")]
            # `code_failed`: a program that raises on purpose, in the example with cleanups.
            assert {error["code"] for error in errors} <= {"http_status", "attempt_lost", "code_failed"}, (run, errors)


def key_of(row: sqlite3.Row) -> str:
    """`send@review#5`; empty for events of the run itself."""
    node: str = row["node"] or ""
    return f"{node}@{row['path']}" if node and row["path"] else node


def data_of(row: sqlite3.Row) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(row["data"] or b"{}")
    return data


def log_is_clean(log: Path) -> None:
    """The server said nothing that asks for a programmer."""
    text = log.read_text(errors="replace")
    for sign in ("Traceback", "dropped from memory", "corrupt"):
        assert sign not in text, text[-4000:]

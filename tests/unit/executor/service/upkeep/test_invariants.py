"""Each invariant, first on a sound database and then on one that was spoilt in the way it is there to notice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from executor.kernel.store.sqlite.reading import SQLiteReading
from executor.service.upkeep.findings import INVARIANTS, Evidence, Finding
from executor.service.upkeep.invariants import check, run_ids
from server.app import build_engine
from server.settings import Settings
from tests.support.documents import document
from tests.unit.executor.service.upkeep.conftest import Copy, block


def findings(copy: Copy, run: str | None = None, evidence: Evidence | None = None) -> list[Finding]:
    db = copy.read()
    try:
        return list(check(db, run=run, evidence=evidence))
    finally:
        db.close()


def kinds(copy: Copy) -> set[str]:
    return {finding.invariant for finding in findings(copy)}


def test_a_sound_database_has_no_findings(copy: Copy, db: SQLiteReading) -> None:
    assert findings(copy) == []
    assert sorted(run_ids(db)) == sorted(copy.run.values())


def test_the_promises_have_numbers_one_to_twelve() -> None:
    assert list(INVARIANTS) == [f"I{n}" for n in range(1, 13)]


def test_one_run_alone_can_be_asked_for(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET status = 'failed' WHERE id = ?", copy.run["hello"])
    copy.spoil("UPDATE runs SET status = 'failed' WHERE id = ?", copy.run["loops"])
    assert {finding.run for finding in findings(copy)} == {copy.run["hello"], copy.run["loops"]}
    assert {finding.run for finding in findings(copy, copy.run["hello"])} == {copy.run["hello"]}
    assert findings(copy, copy.run["asking"]) == []


def test_some_invariants_alone_can_be_asked_for(copy: Copy, db: SQLiteReading) -> None:
    copy.spoil("UPDATE runs SET status = 'failed' WHERE id = ?", copy.run["hello"])
    copy.spoil("UPDATE runs SET next_run_at_ms = NULL WHERE id = ?", copy.run["sleeping"])
    assert {finding.invariant for finding in check(db, only={"I8"})} == {"I8"}
    assert {finding.invariant for finding in check(db, only={"I2"})} == {"I2"}
    assert list(check(db, only={"I3", "I12"})) == []


def test_a_finding_says_what_where_and_how_to_fix_it(copy: Copy) -> None:
    copy.spoil("UPDATE waits SET status = 'cancelled' WHERE run_id = ?", copy.run["asking"])
    (finding,) = findings(copy)
    assert (finding.run, finding.node) == (copy.run["asking"], "ask")
    assert "ask!1" in finding.what and finding.fix


def test_i1_a_run_that_was_acknowledged_is_missing(copy: Copy) -> None:
    assert findings(copy, evidence=Evidence(acknowledged=list(copy.run.values()))) == []
    (finding,) = findings(copy, evidence=Evidence(acknowledged=["0123", copy.run["hello"]]))
    assert (finding.invariant, finding.run) == ("I1", "0123")


def test_i1_an_answer_was_lost(copy: Copy) -> None:
    copy.spoil("UPDATE waits SET status = 'answered' WHERE run_id = ?", copy.run["asking"])
    assert kinds(copy) == {"I1"}


def test_i1_an_answer_on_its_way_is_fine(copy: Copy) -> None:
    run = copy.run["asking"]
    copy.spoil("UPDATE waits SET status = 'answered' WHERE run_id = ?", run)
    copy.spoil(
        "INSERT INTO inbox (run_id, n, fact) VALUES (?, 1, CAST(? AS BLOB))", run, '{"type":"answer","wait":"ask!1"}'
    )
    assert {f.what for f in findings(copy)} == {"its inbox has messages, but not scheduled to wake"}
    copy.spoil("UPDATE runs SET next_run_at_ms = 1 WHERE id = ?", run)
    assert findings(copy) == []


def test_i1_messages_are_left_behind(copy: Copy) -> None:
    copy.spoil("INSERT INTO inbox (run_id, n, fact) VALUES (?, 1, CAST('{}' AS BLOB))", copy.run["hello"])
    assert kinds(copy) == {"I1"}


def test_i2_the_row_and_the_journal_end_differently(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET status = 'failed' WHERE id = ?", copy.run["hello"])
    assert kinds(copy) == {"I2"}


def test_i2_an_ended_run_has_no_end(copy: Copy) -> None:
    copy.spoil("DELETE FROM loose_events WHERE type = 'run.finished' AND run_id = ?", copy.run["hello"])
    copy.spoil("UPDATE runs SET seq = seq - 1 WHERE id = ?", copy.run["hello"])
    assert kinds(copy) == {"I2"}


def test_i2_an_end_without_a_time(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET finished_at_ms = NULL WHERE id = ?", copy.run["failing"])
    assert kinds(copy) == {"I2"}


def test_i2_the_row_and_the_journal_differ_about_the_error(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET error = NULL WHERE id = ?", copy.run["failing"])
    copy.spoil("UPDATE runs SET error = CAST(? AS BLOB) WHERE id = ?", '{"code":"x"}', copy.run["hello"])
    what = "the error in its row differs from its journal"
    assert {(f.invariant, f.run, f.what) for f in findings(copy)} == {
        ("I2", copy.run["failing"], what),
        ("I2", copy.run["hello"], what),
    }


APPEND_COPY = """
INSERT INTO loose_events
SELECT run_id, (SELECT max(seq) + 1 FROM events WHERE run_id = ?1), at_ms, type, node, path, attempt, data, output
  FROM events WHERE run_id = ?1 AND type = ?2 LIMIT 1"""


def test_i3_a_result_is_recorded_twice(copy: Copy) -> None:
    copy.spoil(APPEND_COPY, copy.run["hello"], "node.succeeded")
    copy.spoil("UPDATE runs SET seq = seq + 1 WHERE id = ?", copy.run["hello"])
    assert kinds(copy) >= {"I2", "I3", "I4"}


def test_i4_a_gap(copy: Copy) -> None:
    copy.spoil("DELETE FROM loose_events WHERE seq = 5 AND run_id = ?", copy.run["loops"])
    assert kinds(copy) == {"I4"}


def test_i4_more_or_fewer_events_than_the_row_says(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET seq = seq + 1 WHERE id = ?", copy.run["hello"])
    assert kinds(copy) == {"I4"}


def test_i4_an_event_that_does_not_decode(copy: Copy) -> None:
    copy.spoil("UPDATE loose_events SET node = 'unknown' WHERE seq = 4 AND run_id = ?", copy.run["loops"])
    copy.spoil("UPDATE loose_events SET type = 'node.dreamt' WHERE seq = 2 AND run_id = ?", copy.run["hello"])
    assert {(f.invariant, f.run) for f in findings(copy)} == {("I4", copy.run["loops"]), ("I4", copy.run["hello"])}


def test_i4_an_event_of_another_time(copy: Copy) -> None:
    copy.spoil("UPDATE loose_events SET at_ms = at_ms - 100000 WHERE seq = 4 AND run_id = ?", copy.run["loops"])
    assert kinds(copy) == {"I4"}


def test_i4_a_journal_of_another_run(copy: Copy) -> None:
    copy.spoil(
        """UPDATE loose_events SET data = CAST('{"run":"x"}' AS BLOB) WHERE seq = 1 AND run_id = ?""", copy.run["hello"]
    )
    (finding,) = findings(copy)
    assert finding.invariant == "I4" and "the id of run x" in finding.what


def test_i5_a_block_that_starts_before_its_parent_has_ended(copy: Copy, db: SQLiteReading) -> None:
    run = copy.run["loops"]
    query = "SELECT seq FROM events WHERE run_id = ? AND type = ? AND node = ?"
    (ended,) = db.db.execute(query, (run, "region.exited", "each:end")).fetchone()
    (started,) = db.db.execute(query, (run, "node.started", "fan:start")).fetchone()
    copy.spoil("UPDATE loose_events SET seq = -seq WHERE run_id = ? AND seq IN (?, ?)", run, ended, started)
    copy.spoil("UPDATE loose_events SET seq = ? WHERE run_id = ? AND seq = ?", started, run, -ended)
    copy.spoil("UPDATE loose_events SET seq = ? WHERE run_id = ? AND seq = ?", ended, run, -started)
    found = findings(copy)
    assert ("I5", "fan:start", True) in {(f.invariant, f.node, "'each:end' has not ended" in f.what) for f in found}


def test_i6_a_block_that_starts_after_the_cancel(copy: Copy) -> None:
    run = copy.run["cancelled"]
    copy.spoil(
        """UPDATE loose_events SET type = 'node.started', node = 'after', attempt = 1, data = NULL
            WHERE run_id = ? AND seq = (SELECT seq + 1 FROM events WHERE run_id = ? AND type = 'run.cancelling')""",
        run,
        run,
    )
    assert "I6" in kinds(copy)


def test_i7_an_ended_run_has_an_owner(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET lease_owner = 'w', lease_until_ms = 1 WHERE id = ?", copy.run["hello"])
    assert kinds(copy) == {"I7"}


def test_i7_an_owner_without_a_lease(copy: Copy) -> None:
    change = "UPDATE runs SET status = 'running', lease_owner = 'w', next_run_at_ms = 1 WHERE id = ?"
    copy.spoil(change, copy.run["asking"])
    assert kinds(copy) == {"I7"}


def test_i7_an_ended_run_is_due(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET next_run_at_ms = 1 WHERE id = ?", copy.run["hello"])
    assert kinds(copy) == {"I7"}


def test_i8_a_timer_without_a_receiver(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET next_run_at_ms = NULL WHERE id = ?", copy.run["sleeping"])
    (finding,) = findings(copy)
    assert finding.invariant == "I8" and "not scheduled to wake" in finding.what


def test_i8_a_timer_that_comes_before_its_run(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET next_run_at_ms = next_run_at_ms + 5 WHERE id = ?", copy.run["sleeping"])
    (finding,) = findings(copy)
    assert finding.invariant == "I8" and "5 ms" in finding.what


def test_i8_a_queued_run_that_is_never_claimed(copy: Copy) -> None:
    copy.spoil("UPDATE runs SET status = 'running', next_run_at_ms = NULL WHERE id = ?", copy.run["asking"])
    assert kinds(copy) == {"I8"}


def test_i8_a_retry_that_came_too_early(copy: Copy, db: SQLiteReading) -> None:
    query = "SELECT seq FROM events WHERE run_id = ? AND type = 'retry.scheduled'"
    (seq,) = db.db.execute(query, (copy.run["failing"],)).fetchone()
    # the whole rest of the journal moves back to the time of the failure
    copy.spoil(
        """UPDATE loose_events SET at_ms = (SELECT at_ms FROM events WHERE run_id = ?1 AND seq = ?2)
            WHERE run_id = ?1 AND seq > ?2""",
        copy.run["failing"],
        seq,
    )
    assert kinds(copy) == {"I8"}


async def test_a_child_whose_end_reaches_no_parent(tmp_path: Path) -> None:
    """The wait for it has no time, and no person can answer it: I8 while it is gone, I1 once it has ended unheard."""
    ask = document("inner", "start ask", blocks={"ask": block("approval", title="All right?")})
    engine = await build_engine(Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only"))
    try:
        outer = document("outer", "start call", blocks={"call": block("run_workflow", definition=ask)})
        parent = (await engine.submit(outer)).run
        await engine.wait_finished(parent, 60)
        (child,) = [row.id for row in await engine.runs.list(parent=parent)]
        await engine.wait_finished(child, 60)
    finally:
        await engine.close()
    copy = Copy(tmp_path / "weft.db", {"parent": parent, "child": child})
    assert findings(copy) == []
    copy.spoil("UPDATE runs SET parent_run_id = NULL, parent_key = NULL WHERE id = ?", child)
    assert [(f.invariant, f.run, f.node) for f in findings(copy)] == [("I8", parent, "call")]
    copy.spoil("UPDATE runs SET parent_run_id = ?, parent_key = ? WHERE id = ?", parent, "call!1", child)
    assert findings(copy) == []
    copy.spoil("UPDATE runs SET status = 'failed' WHERE id = ?", child)
    assert ("I1", parent, "call") in [(f.invariant, f.run, f.node) for f in findings(copy)]
    copy.spoil(
        "INSERT INTO inbox (run_id, n, fact) VALUES (?, 1, CAST(? AS BLOB))", parent, '{"type":"child","wait":"call!1"}'
    )
    copy.spoil("UPDATE runs SET next_run_at_ms = 1 WHERE id = ?", parent)
    assert findings(copy, parent) == []


def test_i9_a_wait_of_which_only_one_side_knows(copy: Copy) -> None:
    copy.spoil("DELETE FROM waits WHERE run_id = ?", copy.run["asking"])
    copy.spoil("UPDATE waits SET status = 'pending' WHERE run_id = ?", copy.run["answered"])
    assert {(f.invariant, f.run) for f in findings(copy)} == {("I9", copy.run["asking"]), ("I9", copy.run["answered"])}


def test_i9_the_row_and_the_journal_differ_about_the_end_of_a_wait(copy: Copy) -> None:
    copy.spoil("UPDATE waits SET status = 'expired' WHERE run_id = ?", copy.run["answered"])
    assert kinds(copy) == {"I9"}


def test_i9_a_wait_that_is_closed_twice(copy: Copy) -> None:
    copy.spoil(APPEND_COPY, copy.run["answered"], "wait.closed")
    copy.spoil("UPDATE runs SET seq = seq + 1 WHERE id = ?", copy.run["answered"])
    assert "I9" in kinds(copy)


def test_i10_a_stream_is_the_journal(copy: Copy, db: SQLiteReading) -> None:
    db.db.row_factory = sqlite3.Row
    query = "SELECT seq, type, node, path, attempt FROM events WHERE run_id = ? ORDER BY seq"
    run = copy.run["loops"]
    heard = [dict(row) for row in db.db.execute(query, (run,))]
    assert findings(copy, evidence=Evidence(transcripts={run: heard})) == []
    assert findings(copy, evidence=Evidence(transcripts={run: heard[:4]})) == []  # the client left
    missing = Evidence(transcripts={run: heard[:3] + heard[4:]})
    assert [f.invariant for f in findings(copy, evidence=missing)] == ["I10"]
    twice = Evidence(transcripts={run: [*heard, heard[-1]]})
    assert [f.invariant for f in findings(copy, evidence=twice)] == ["I10"]
    other = Evidence(transcripts={run: [{**heard[0], "type": "run.begun"}]})
    assert [f.invariant for f in findings(copy, evidence=other)] == ["I10"]


def test_i12_rows_that_are_referred_to_are_missing(copy: Copy) -> None:
    copy.spoil("DELETE FROM blobs")
    copy.spoil("DELETE FROM documents WHERE hash = (SELECT document_hash FROM runs WHERE id = ?)", copy.run["asking"])
    copy.spoil("DELETE FROM plans WHERE hash = (SELECT plan_hash FROM runs WHERE id = ?)", copy.run["failing"])
    copy.spoil("DELETE FROM workflows WHERE name = 'hello'")
    found = [f for f in findings(copy) if f.invariant == "I12"]
    assert {f.run for f in found} == {"", *(copy.run[name] for name in ("big", "asking", "failing", "hello"))}
    assert {f.invariant for f in findings(copy)} == {"I12"}


def test_i12_a_large_output_that_gc_would_take(copy: Copy) -> None:
    copy.spoil("DELETE FROM blob_refs WHERE run_id = ?", copy.run["big"])
    assert {(f.invariant, f.run) for f in findings(copy)} == {("I12", copy.run["big"])}


def test_i12_a_plan_that_does_not_decode(copy: Copy) -> None:
    copy.spoil("UPDATE plans SET ir = x'7b' WHERE hash = (SELECT plan_hash FROM runs WHERE id = ?)", copy.run["hello"])
    (finding,) = findings(copy)
    assert (finding.invariant, finding.run) == ("I12", copy.run["hello"])


def test_i12_the_file_is_damaged(copy: Copy) -> None:
    with closing(copy.read()) as db:
        (page,) = db.db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'waits_by_status'").fetchone()
        (size,) = db.db.execute("PRAGMA page_size").fetchone()
    with open(copy.path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 200)
    with closing(copy.read()) as db:
        found = [finding for finding in check(db, only={"I12"}) if finding.what.startswith("SQLite: ")]
    assert found and "weft restore" in found[0].fix


def test_reading_changes_nothing(copy: Copy, db: SQLiteReading) -> None:
    before = copy.path.read_bytes()
    list(check(db, evidence=Evidence(secrets=["hello"])))
    try:
        db.db.execute("DELETE FROM run_details")
    except sqlite3.OperationalError as error:
        assert "readonly" in str(error)
    assert copy.path.read_bytes() == before

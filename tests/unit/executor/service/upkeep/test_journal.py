"""The strict check of a journal: silent about every journal the core makes, loud about a changed one."""

from __future__ import annotations

from random import Random

import orjson
import pytest
from msgspec.structs import replace

from executor.kernel.core import events as e
from executor.kernel.journal.codec import Codec
from executor.kernel.store.run_rows import Record
from executor.service.upkeep.findings import Finding
from executor.service.upkeep.journal import JournalCheck
from tests.support.core.drive import Drive, Faults
from tests.support.core.generator import Table, generate, plan_of
from tests.support.size import size


class Recording(Drive):
    """A simulated run that also keeps its journal as the rows the store would have."""

    def __init__(self, seed: int, order: int) -> None:
        workflow = generate(seed)
        faults = Faults.draw(Random(f"{seed} faults {order}")) if order else None
        super().__init__(workflow, plan_of(workflow), Table(workflow), order, faults)
        self.records: list[Record] = []
        self._codec = Codec(self.plan)
        self._at_ms = 0

    def keep(self, event: e.Event, at_ms: int) -> None:
        super().keep(event, at_ms)
        self._at_ms = max(self._at_ms, at_ms)
        self.records.append(self._codec.to_record(len(self.records) + 1, self._at_ms, event))


def findings(recording: Recording, records: list[Record]) -> list[Finding]:
    check = JournalCheck(f"run-{recording.workflow.seed}", recording.plan)
    found = [finding for record in records for finding in check.see(record)]
    return [*found, *check.end(len(recording.records))]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_journals_of_the_core_are_fine(order: int) -> None:
    for seed in range(size(50, 500)):
        recording = Recording(seed, order)
        recording.run()
        assert findings(recording, recording.records) == [], f"seed {seed}"


DECISIVE = {"node.started", "node.succeeded", "node.failed", "region.sized", "region.exited", "scope.opened"}


def numbered(records: list[Record]) -> list[Record]:
    return [replace(record, seq=seq) for seq, record in enumerate(records, 1)]


def candidates(types: set[str], seeds: int = 60) -> list[tuple[Recording, int]]:
    """One place of each journal that has an event of these types: the recording and the index."""
    found = []
    for seed in range(seeds):
        recording = Recording(seed, 1)
        recording.run()
        places = [n for n, record in enumerate(recording.records) if record.type in types]
        if places:
            found.append((recording, places[seed % len(places)]))
    assert len(found) > 5
    return found


def test_a_decisive_event_that_is_missing_is_noticed() -> None:
    for recording, place in candidates(DECISIVE):
        records = numbered(recording.records[:place] + recording.records[place + 1 :])
        assert [f.invariant for f in findings(recording, records)], (recording.workflow.seed, place)


def test_a_decisive_event_that_comes_twice_is_noticed() -> None:
    for recording, place in candidates(DECISIVE):
        records = numbered(recording.records[: place + 1] + recording.records[place:])
        found = findings(recording, records)
        assert "I4" in {f.invariant for f in found}, (recording.workflow.seed, place)


def test_a_gap_and_an_end_that_is_cut_off_are_noticed() -> None:
    recording, place = candidates({"node.started"})[0]
    gap = findings(recording, recording.records[:place] + recording.records[place + 1 :])
    assert gap[0].invariant == "I4" and "follows event" in gap[0].what
    cut = findings(recording, recording.records[:-1])
    assert [f.invariant for f in cut] == ["I4"] and "its row says" in cut[0].what


def test_a_start_before_its_parents_is_noticed() -> None:
    noticed = 0
    for recording, place in candidates({"node.succeeded"}):
        ended, *rest = recording.records[place:]
        behind = [n for n, record in enumerate(rest) if record.type == "node.started" and record.path == ended.path]
        if not behind:
            continue
        moved = [*rest[: behind[0] + 1], ended, *rest[behind[0] + 1 :]]  # the end comes after a start it made possible
        noticed += "I5" in {f.invariant for f in findings(recording, numbered(recording.records[:place] + moved))}
    assert noticed > 5


def test_a_start_after_the_cancel_is_noticed() -> None:
    recording, place = candidates({"node.started"})[0]
    cancel = Record(0, recording.records[place].at_ms, "run.cancelling", None, "", 0, b"{}")
    found = findings(recording, numbered([*recording.records[:place], cancel, *recording.records[place:]]))
    assert "I6" in {f.invariant for f in found}


def test_whatever_comes_after_the_end_is_noticed() -> None:
    recording, place = candidates({"node.started"})[0]
    found = findings(recording, numbered([*recording.records, recording.records[place]]))
    assert {"I2", "I4"} <= {f.invariant for f in found}


def test_an_early_timer_is_noticed() -> None:
    for recording, place in candidates({"retry.scheduled"}):
        due_ms = orjson.loads(recording.records[place].data or b"")["due_ms"]
        key = (recording.records[place].node, recording.records[place].path)
        started = [r for r in recording.records[place:] if r.type == "node.started" and (r.node, r.path) == key]
        if started and due_ms > recording.records[place].at_ms:
            cut = recording.records[: started[0].seq]
            cut = [replace(record, at_ms=min(record.at_ms, due_ms - 1)) for record in cut]
            found = findings(recording, cut)
            assert ("I8", True) in {(f.invariant, "too early" in f.what) for f in found}
            return
    raise AssertionError("no journal has a retry that waited")


def test_a_cleanup_in_a_scope_that_was_never_opened_is_a_finding() -> None:
    for recording, place in candidates({"cleanup.opened"}):
        codec = Codec(recording.plan)
        event = codec.to_event(recording.records[place])
        assert isinstance(event, e.CleanupOpened)
        stray = replace(event, key=(((len(recording.plan.regions) - 1, 999),), event.key[1]), given_up=True)
        record = codec.to_record(place + 1, recording.records[place].at_ms, stray)
        found = findings(recording, numbered([*recording.records[:place], record, *recording.records[place:]]))
        assert "I4" in {f.invariant for f in found}

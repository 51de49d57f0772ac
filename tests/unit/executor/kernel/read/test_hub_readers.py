"""Who is woken, and by what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from executor.kernel.read import cursor as lookout_module
from executor.kernel.read.cursor import CommitPoll
from executor.kernel.read.hub import Hub
from executor.kernel.read.watchers import Bell
from tests.support.model_store.store import ModelStore
from tests.support.until import until
from tests.unit.executor.kernel.read.test_hub_tail import records, seqs


class Reader:
    def __init__(self, hub: Hub, run: str, after: int = 0) -> None:
        self.after = after
        self._woken = False
        hub.enter(run, self)

    def wake(self) -> None:
        self._woken = True

    def heard(self) -> bool:
        woken, self._woken = self._woken, False
        return woken


async def test_a_bell_that_was_rung_before_the_wait_is_heard() -> None:
    bell = Bell()
    bell.ring()
    await asyncio.wait_for(bell.wait(), 30)
    bell.clear()
    waiting = asyncio.create_task(bell.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    bell.ring()
    bell.ring()
    await asyncio.wait_for(waiting, 30)


async def test_a_reader_that_leaves_while_it_waits_is_not_rung() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert bell._waiting is None
    bell.ring()


def test_all_readers_of_a_run_are_rung() -> None:
    hub = Hub()
    one, two, other = Reader(hub, "a"), Reader(hub, "a"), Reader(hub, "b")
    hub.signal("a")
    assert (one.heard(), two.heard(), other.heard()) == (True, True, False)
    hub.committed("b", records(1, 2))
    assert (one.heard(), two.heard(), other.heard()) == (False, False, True)


def test_who_has_left_is_not_kept() -> None:
    hub = Hub()
    one, two = Reader(hub, "a"), Reader(hub, "a")
    hub.committed("a", records(1, 2))
    hub.leave("a", one)
    hub.leave("a", one)
    assert hub.watched() == ["a"]
    assert seqs(hub.tails.behind("a", 0)) == [1, 2]
    hub.leave("a", two)
    assert hub.watched() == []
    assert hub.tails.behind("a", 0) is None


def test_a_look_wakes_who_has_less_than_there_is() -> None:
    hub = Hub()
    early, late = Reader(hub, "a", 3), Reader(hub, "a", 5)
    signals = hub.signals
    assert hub.looked("a", 5)
    assert (early.heard(), late.heard()) == (True, False)
    assert hub.signals > signals, "a read that is under way may not have seen it"
    hub.looked("a", 5)
    assert early.heard(), "as long as it has less"
    early.after = 5
    assert not hub.looked("a", 5)
    assert (early.heard(), late.heard()) == (False, False)
    hub.looked("a", None)
    assert (early.heard(), late.heard()) == (True, True), "the run is gone"


def test_what_is_not_known_to_be_a_commit_of_this_process_ends_the_tail() -> None:
    hub = Hub()
    Reader(hub, "a")
    hub.committed("a", records(1, 2))
    hub.looked("a", 2)
    assert seqs(hub.tails.behind("a", 1)) == [2]
    hub.signal("a")  # its status, or its inbox
    assert seqs(hub.tails.behind("a", 1)) == [2]
    hub.grown("a")
    assert hub.tails.behind("a", 1) is None
    hub.committed("a", records(3, 4))
    hub.looked("a", 5)
    assert hub.tails.behind("a", 3) is None
    hub.committed("a", records(6, 6))
    hub.looked("a", None)
    assert hub.tails.behind("a", 5) is None


async def test_live_text_rings_soon_and_once_for_what_comes_together() -> None:
    hub, bell = Hub(), Bell()
    deltas = hub.deltas("a", bell)
    hub.delta("a", "n", "Hel", 1)
    hub.delta("a", "n", "lo", 1)
    assert not bell._rung
    await asyncio.wait_for(bell.wait(), 30)
    assert deltas.read() == {"n": "Hello"}
    hub.delta("a", "n", "!", 1)
    deltas.close()
    assert deltas._timer is not None and deltas._timer.cancelled()


class Seqs(ModelStore):
    def __init__(self) -> None:
        super().__init__()
        self.seqs: dict[str, int] = {}

    async def last_seqs(self, run_ids: Sequence[str]) -> dict[str, int]:
        return {run: self.seqs[run] for run in run_ids if run in self.seqs}


async def test_the_lookout_wakes_who_has_less_until_it_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout_module, "LOOK_S", 0.001)
    hub, store = Hub(), Seqs()
    lookout = CommitPoll(store, hub)
    reader, other = Reader(hub, "a", 3), Reader(hub, "b", 7)
    store.seqs = {"a": 3, "b": 7}
    lookout.begin()
    await asyncio.sleep(0.02)
    assert not (reader.heard() or other.heard())
    store.seqs["a"] = 4
    for _ in range(2):
        await until(reader.heard)
    reader.after = 4
    await asyncio.sleep(0.02)
    reader.heard()
    store.seqs["a"] = 5
    await until(reader.heard)
    reader.after = 5
    await asyncio.sleep(0.02)
    reader.heard()
    late = Reader(hub, "a", 5)
    del store.seqs["a"]
    await until(late.heard)
    assert reader.heard() and not other.heard()
    for run, one in (("a", reader), ("a", late), ("b", other)):
        hub.leave(run, one)
    await until(lambda: lookout._task is not None and lookout._task.done())


async def test_readers_of_a_run_that_has_grown_elsewhere_are_woken_without_a_look() -> None:
    hub, store = Hub(), Seqs()
    lookout = CommitPoll(store, hub)
    reader, other = Reader(hub, "a", 3), Reader(hub, "b", 7)
    hub.committed("a", records(4, 4))
    assert reader.heard() and seqs(hub.tails.behind("a", 3)) == [4]
    before = hub.signals
    lookout.changed("a")
    lookout.changed("without a reader")
    assert reader.heard() and not other.heard()
    assert hub.signals == before + 1, "a read that began before this may not have it"
    assert hub.tails.behind("a", 3) is None

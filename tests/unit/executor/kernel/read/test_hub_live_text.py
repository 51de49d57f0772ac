"""What was said so far is there for readers who come later, and is bounded."""

from __future__ import annotations

from executor.kernel.read.hub import Hub
from executor.kernel.read.live_texts import TEXT_MAX, TOTAL_MAX, LiveTexts
from executor.kernel.store.run_rows import Record


async def test_a_reader_who_comes_later_has_it_from_its_beginning() -> None:
    hub = Hub()
    hub.delta("r", "a", "Roo", 3)
    hub.delta("other", "a", "No", 1)
    later, live = hub.deltas("r", so_far=True), hub.deltas("r")
    hub.delta("r", "a", "ibos", 3)
    assert later.read(2) == {}  # its attempt begins with event 3
    assert later.read(3) == {"a": "Rooibos"}
    assert live.read() == {"a": "ibos"}
    assert later.read() == {}


async def test_a_slow_reader_has_it_after_what_was_committed_before_it() -> None:
    hub = Hub()
    hub.tails.begin("r")
    deltas = hub.deltas("r")
    hub.delta("r", "a", "I look.", 3)
    hub.committed("r", [Record(4, 5, "step.done", "a", "", 1)])
    hub.delta("r", "a", " Done.", 3)
    assert [deltas.read(3), deltas.read(4)] == [{"a": "I look."}, {"a": " Done."}]


def test_another_attempt_begins_anew() -> None:
    texts = LiveTexts()
    texts.add("r", "a", "First", 3)
    texts.add("r", "a", "Sec", 8)
    texts.add("r", "a", "ond", 8)
    texts.add("r", "b", "", 9)
    assert texts.of("r") == [("a", "Second", 8), ("b", "", 9)]
    texts.forget("r")
    assert texts.of("r") == [] and texts._total == 0


def test_a_long_text_loses_its_beginning() -> None:
    texts = LiveTexts()
    texts.add("r", "a", "x" * TEXT_MAX, 1)
    assert texts.of("r") == [("a", "x" * TEXT_MAX, 1)]
    texts.add("r", "a", "yz", 1)
    texts.add("r", "a", "!", 1)
    ((_, text, _),) = texts.of("r")
    assert text == "…" + "x" * (TEXT_MAX - 3) + "yz!"


def test_who_has_been_silent_for_longest_is_forgotten() -> None:
    texts, whole = LiveTexts(), "x" * TEXT_MAX
    runs = [str(n) for n in range(TOTAL_MAX // TEXT_MAX)]
    for run in runs:
        texts.add(run, "a", whole, 1)
    texts.add("0", "b", "", 1)  # it has spoken again
    texts.add("one more", "a", "y", 1)
    assert [run for run in [*runs, "one more"] if not texts.of(run)] == ["1"]
    assert texts._total <= TOTAL_MAX

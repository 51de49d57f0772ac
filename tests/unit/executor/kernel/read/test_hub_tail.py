"""What readers get from memory is what they would read from the disk, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from executor.kernel.read import hub as tails_of
from executor.kernel.read.hub import BYTES_MAX, EVENTS_MAX, Tails
from executor.kernel.store.run_rows import Record


def records(first: int, last: int, bytes: int = 0) -> list[Record]:
    return [Record(seq, 5, "node.log", "n", "", 1, b"x" * bytes) for seq in range(first, last + 1)]


def seqs(found: Sequence[Record] | None) -> list[int] | None:
    return None if found is None else [record.seq for record in found]


def read(*runs: str, bytes_max: int = 1 << 30) -> Tails:
    tails = Tails(bytes_max)
    for run in runs:
        tails.begin(run)
    return tails


def test_a_reader_gets_all_that_is_behind_it() -> None:
    tails = read("r")
    tails.add("r", records(4, 5))
    tails.add("r", records(6, 6))
    tails.add("r", records(7, 9))
    assert seqs(tails.behind("r", 3)) == [4, 5, 6, 7, 8, 9]
    assert seqs(tails.behind("r", 4)) == [5, 6, 7, 8, 9]
    assert seqs(tails.behind("r", 6)) == [7, 8, 9]
    assert seqs(tails.behind("r", 8)) == [9]
    assert seqs(tails.behind("r", 9)) == [], "it is known that there is nothing more"


def test_one_that_is_further_back_or_ahead_goes_to_the_disk() -> None:
    tails = read("r")
    tails.add("r", records(4, 5))
    assert tails.behind("r", 2) is None
    assert tails.behind("r", 6) is None
    assert tails.behind("other", 0) is None


def test_readers_who_are_up_to_date_share_one_list() -> None:
    tails = read("r")
    tails.add("r", tuple(records(1, 2)))
    tails.add("r", tuple(records(3, 4)))
    assert tails.behind("r", 2) is tails.behind("r", 2)


def test_nothing_is_kept_of_a_run_without_readers() -> None:
    tails = read("r")
    tails.add("other", records(1, 2))
    tails.add("r", records(1, 2))
    tails.end("r")
    assert tails.behind("other", 0) is tails.behind("r", 0) is None
    assert (tails._size, len(tails._tails)) == (0, 0)


def test_a_gap_begins_a_new_tail() -> None:
    """Another process has owned the run in between."""
    tails = read("r")
    tails.add("r", records(1, 5))
    tails.add("r", records(9, 10))
    assert tails.behind("r", 5) is None
    assert seqs(tails.behind("r", 8)) == [9, 10]


def test_what_others_have_committed_ends_it() -> None:
    tails = read("r")
    tails.add("r", records(1, 5))
    tails.advance("r", 5)
    assert seqs(tails.behind("r", 3)) == [4, 5]
    tails.advance("r", 6)
    assert tails.behind("r", 3) is None
    tails.add("r", records(6, 6))  # it was this process that had committed it
    assert seqs(tails.behind("r", 5)) == [6]


def test_a_commit_that_is_heard_of_after_those_of_the_next_owner_is_not_the_end() -> None:
    tails = read("r")
    tails.advance("r", 8)
    tails.add("r", records(1, 5))
    assert tails.behind("r", 5) is None


def test_what_is_forgotten_is_on_the_disk() -> None:
    tails = read("r")
    tails.add("r", records(1, 5))
    tails.forget("r")
    assert tails.behind("r", 5) is None
    tails.add("r", records(6, 7))
    assert seqs(tails.behind("r", 5)) == [6, 7]
    assert tails._size == 2 * 200


def test_the_events_of_one_run_are_bounded() -> None:
    tails = read("r")
    for first in range(1, 3 * EVENTS_MAX, 10):
        tails.add("r", records(first, first + 9))
    last = 3 * EVENTS_MAX
    assert seqs(tails.behind("r", last - EVENTS_MAX)) == list(range(last - EVENTS_MAX + 1, last + 1))
    assert tails.behind("r", last - EVENTS_MAX - 1) is None
    assert tails._size == EVENTS_MAX * 200


def test_the_bytes_of_one_run_are_bounded() -> None:
    tails = read("r")
    for seq in range(1, 10):
        tails.add("r", records(seq, seq, BYTES_MAX // 3))
    assert seqs(tails.behind("r", 7)) == [8, 9]
    assert tails.behind("r", 6) is None
    tails.add("r", records(10, 10, BYTES_MAX))
    assert tails.behind("r", 9) is tails.behind("r", 8) is None, "too large to be kept"
    tails.add("r", records(11, 11))
    assert seqs(tails.behind("r", 10)) == [11]


def test_an_append_of_more_events_than_are_kept_is_read_from_the_disk() -> None:
    tails = read("r")
    tails.add("r", records(1, EVENTS_MAX + 1))
    assert tails.behind("r", 0) is None
    assert tails._size == 0
    tails.add("r", records(EVENTS_MAX + 2, EVENTS_MAX + 3))
    assert seqs(tails.behind("r", EVENTS_MAX + 1)) == [EVENTS_MAX + 2, EVENTS_MAX + 3]


def test_the_bytes_of_all_runs_are_bounded() -> None:
    tails = read("a", "b", "c", bytes_max=5_000)
    tails.add("a", records(1, 1, 2_000))
    tails.add("b", records(1, 1, 2_000))
    tails.add("a", records(2, 2, 100))
    tails.add("c", records(1, 1, 2_000))
    assert tails.behind("b", 0) is None, "it was added to longest ago"
    assert seqs(tails.behind("a", 0)) == [1, 2]
    assert seqs(tails.behind("c", 0)) == [1]
    assert tails._size == 2_000 + 100 + 2_000 + 3 * 200
    assert tails_of.size_of(records(1, 1, 2_000)) == 2_200

"""Ids of runs: the time first, the rest random."""

from __future__ import annotations

import os
import re

import pytest

from executor.kernel.run import new_run
from executor.kernel.run.new_run import DRAWN_BYTES, new_run_id


def test_begins_with_the_time_in_milliseconds() -> None:
    id = new_run_id(1_700_000_000_123)
    assert re.fullmatch(r"[0-9a-f]{32}", id)
    assert int(id[:12], 16) == 1_700_000_000_123


def test_later_ids_come_after_earlier_ones() -> None:
    ids = [new_run_id(now_ms) for now_ms in (0, 1, 255, 256, 1_700_000_000_000, 1_700_000_000_001)]
    assert ids == sorted(ids)


def test_no_id_comes_twice_in_one_millisecond() -> None:
    assert len({new_run_id(5) for _ in range(5_000)}) == 5_000


def test_random_bytes_are_drawn_for_many_ids_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def random_bytes(count: int) -> bytes:
        asked.append(count)
        return os.urandom(count)

    monkeypatch.setattr(new_run, "random_bytes", random_bytes)
    monkeypatch.setattr(new_run, "_drawn", [])
    for _ in range(410):
        new_run_id(1)
    assert asked == [DRAWN_BYTES, DRAWN_BYTES]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_makes_other_ids() -> None:
    new_run_id(1)
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writable, new_run_id(1).encode())
        os._exit(0)
    os.waitpid(child, 0)
    with os.fdopen(readable) as pipe:
        os.close(writable)
        theirs = pipe.read()
    assert len(theirs) == 32 and theirs != new_run_id(1)

from __future__ import annotations

import asyncio

from executor.kernel.read.watchers import Watchers


async def test_all_watchers_of_a_run_are_signalled_once() -> None:
    watchers = Watchers()
    one, two, other = watchers.watch("a"), watchers.watch("a"), watchers.watch("b")
    watchers.signal("a")
    assert (one.done(), two.done(), other.done()) == (True, True, False)
    assert watchers.runs() == ["b"]
    later = watchers.watch("a")
    assert not later.done()


async def test_who_has_left_is_not_kept() -> None:
    watchers = Watchers()
    one, two = watchers.watch("a"), watchers.watch("a")
    one.cancel()
    await asyncio.sleep(0)
    assert watchers.runs() == ["a"]
    watchers.signal("a")
    assert two.done()
    two = watchers.watch("a")
    two.cancel()
    await asyncio.sleep(0)
    assert watchers.runs() == []

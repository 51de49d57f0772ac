"""Whose turn it is."""

import threading

from executor.blocks.sandbox.workers import FairQueue


def owners(queue: FairQueue[int], count: int) -> str:
    return "".join(taken[0] for taken in (queue.next() for _ in range(count)) if taken is not None)


def test_owners_take_turns_and_keep_their_own_order() -> None:
    queue: FairQueue[int] = FairQueue(99)
    for owner, jobs in (("a", 4), ("b", 2), ("c", 1)):
        for job in range(jobs):
            queue.put(owner, job)
    assert [queue.next() for _ in range(7)] == [
        ("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2), ("a", 3),
    ]  # fmt: skip


def test_of_one_owner_only_so_many_are_out() -> None:
    queue: FairQueue[int] = FairQueue(2)
    for job in range(4):
        queue.put("a", job)
    assert owners(queue, 2) == "aa"
    queue.put("a", 4)
    queue.put("b", 0)
    assert owners(queue, 1) == "b"
    queue.done("a")
    assert queue.next() == ("a", 2)
    queue.done("a")
    queue.done("a")
    assert [queue.next(), queue.next()] == [("a", 3), ("a", 4)]


def test_a_taker_waits_for_a_job_and_for_its_owner() -> None:
    queue: FairQueue[int] = FairQueue(1)
    got: list[object] = []

    def work() -> None:
        while (taken := queue.next()) is not None:
            got.append(taken)
            queue.done(taken[0])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for job in range(500):
        queue.put(f"owner {job % 7}", job)
    queue.close()
    for thread in threads:
        thread.join(60)
    assert len(got) == 500
    assert queue.next() is None

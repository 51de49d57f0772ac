from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from executor.blocks.sandbox.engine import once

# Four guests that are the first of their process, all at the same moment.
TOGETHER = """
import threading
from executor.blocks.sandbox.guest import Guest

gate = threading.Barrier(4)
answers = []

def first():
    gate.wait()
    guest = Guest(memory_bytes=32 << 20, output_bytes=1 << 20)
    request = b'{"kind": "check", "source": "1 + 1", "form": "expression"}'
    answers.append(guest.call(request, now_ms=0, soft_ms=20_000, hard_ms=20_000))
    guest.close()

threads = [threading.Thread(target=first) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(answers == [answers[0]] * 4)
"""


def test_threads_that_come_together_share_one() -> None:
    gate = threading.Barrier(8)
    made: list[object] = []
    got: list[object] = []

    @once
    def slow() -> object:
        time.sleep(0.02)
        made.append(object())
        return made[-1]

    def ask() -> None:
        gate.wait()
        got.append(slow())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert got == made * 8


def test_what_failed_is_tried_again() -> None:
    tries: list[int] = []

    @once
    def second_try() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise OSError
        return 7

    with pytest.raises(OSError):
        second_try()
    assert (second_try(), second_try(), len(tries)) == (7, 7, 2)


def test_the_first_guests_of_a_process_may_start_at_the_same_moment() -> None:
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]

"""Ids of runs: 12 hex digits of the time at which the run was made, then 20 random ones.

Runs that are made together lie together in every index on the id, so a commit of many of them writes few pages. The
order of ids means nothing: clocks of processes differ, and runs of before have 32 random digits.
"""

from __future__ import annotations

import os

DRAWN_BYTES = 4096  # at once: each draw gives up the interpreter's lock, and costs as much as for one id
RANDOM_DIGITS = 20

random_bytes = os.urandom
_drawn: list[str] = []


def new_run_id(now_ms: int) -> str:
    """From any thread."""
    while True:
        try:
            return f"{now_ms:012x}{_drawn.pop()}"
        except IndexError:
            digits = random_bytes(DRAWN_BYTES).hex()
            last = len(digits) - RANDOM_DIGITS
            _drawn.extend(digits[start : start + RANDOM_DIGITS] for start in range(0, last + 1, RANDOM_DIGITS))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)  # a forked process must not make the same ids

"""What a piece of work costs, whatever else this process does or other tests have left in it."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def computes_within(seconds: float) -> Iterator[None]:
    """At most that much time of this thread's processor."""
    with no_collector():
        began = time.thread_time()
        yield
        took_s = time.thread_time() - began
    assert took_s < seconds, f"{took_s:.3f} s"


@contextmanager
def no_collector() -> Iterator[None]:
    """The garbage of all tests before costs time when it is collected, and calls what it calls when it ends."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

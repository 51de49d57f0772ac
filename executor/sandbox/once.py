"""What a process has one of, made at its first use.

Not `functools.lru_cache`: it lets two threads that come together make one each, and keeps one of them. Two engines in
one process are worse than slow: wasmtime aborts the whole process when a module of one meets a function of the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")


def once(make: Callable[[], T]) -> Callable[[], T]:
    """`make`, called once over all threads; those who come meanwhile wait for it. If it raises, the next tries."""
    made: list[T] = []
    making = threading.Lock()

    @wraps(make)
    def get() -> T:
        if not made:
            with making:
                if not made:
                    made.append(make())
        return made[0]

    return get

"""How many examples a property gets."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final

from hypothesis import settings

EXAMPLES: Final = int(os.environ.get("WEFT_FUZZ_EXAMPLES") or 0)
FIRST_SEED: Final = int(time.time()) * 1000 if EXAMPLES else 0  # of properties in several parts: 0, so that CI repeats


def examples(usual: int) -> settings:
    """A decorator: `usual` of them in CI, WEFT_FUZZ_EXAMPLES when that is set."""
    return settings(max_examples=EXAMPLES or usual)


def rounds() -> Iterator[int]:
    """A new seed for each round, until WEFT_SOAK_SECONDS are over; one round without them. Prints each."""
    number = int(time.time()) * 1000
    end_s = time.monotonic() + float(os.environ.get("WEFT_SOAK_SECONDS", "0"))
    while True:
        print(f"seed {number}")  # pytest shows it when the round fails
        yield number
        number += 1
        if time.monotonic() >= end_s:
            return

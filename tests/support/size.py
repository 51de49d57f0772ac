"""How many: a sample in `make test`, all of them when WEFT_SOAK_SECONDS is set (`make soak`)."""

from __future__ import annotations

import os

WHOLE = "WEFT_SOAK_SECONDS" in os.environ


def size(sample: int, whole: int) -> int:
    return whole if WHOLE else sample

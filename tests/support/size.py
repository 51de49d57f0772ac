"""How many: a sample in `make check`, all of them when WEFT_SOAK_SECONDS is set (`make soak`)."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

WHOLE = "WEFT_SOAK_SECONDS" in os.environ


def size(sample: int, whole: int) -> int:
    return whole if WHOLE else sample


def sampled(start: int, seeds: int, chunk: int, sample: int) -> list[object]:
    """Where each chunk of seeds starts; those past the first `sample` seeds are proofs, for `make check`."""
    starts = range(start, start + seeds, chunk)
    return [one if one < start + sample else pytest.param(one, marks=pytest.mark.proof) for one in starts]


def one_in(step: int, cases: Sequence[object]) -> list[object]:
    """Return the cases; all but one in `step` are proofs, for `make check`."""
    return [pytest.param(one, marks=[pytest.mark.proof] if n % step else []) for n, one in enumerate(cases)]

"""How many examples a property gets."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import settings

EXAMPLES: Final = int(os.environ.get("WEFT_FUZZ_EXAMPLES") or 0)


def examples(usual: int) -> settings:
    """A decorator: `usual` of them in CI, WEFT_FUZZ_EXAMPLES when that is set."""
    return settings(max_examples=EXAMPLES or usual)

"""JavaScript with its references taken out: what the sandbox evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Bound:
    """`source` reads its references as `__v["..."]` (typed) or `__t["..."]` (rendered text)."""

    source: str
    values: Mapping[str, Any]
    texts: Mapping[str, str] = field(default_factory=dict)

"""Counts the calls of a method."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest


def counted(of: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often this method is called from now on."""
    calls: Counter[str] = Counter()
    method = getattr(of, name)

    async def call(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return await method(*args, **kwargs)

    monkeypatch.setattr(of, name, call)
    return calls

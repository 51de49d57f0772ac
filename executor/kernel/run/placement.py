"""Evaluates the queue settings of a plan for one input: texts with references filled in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson

from compiler.plan import Plan
from compiler.references import find, parse
from executor.kernel.store.run_rows import Placement
from executor.kernel.values import variables as paths
from executor.kernel.values.payload import MISSING, render

Bound = TypeVar("Bound", int, float)

KEY_LENGTH_MAX: Final = 200
_Reference = tuple[tuple[str | int, ...], str | None]  # where in the input, and the JSON of what stands for nothing


def placement_of(plan: Plan, input: Any, priority: int | None = None) -> Placement:
    """Return the placement of a run. `priority` replaces that of the workflow."""
    settings = plan.settings
    fair = "" if settings.fair is None else filled(settings.fair, input)
    priority = settings.priority if priority is None else priority
    if not (settings.limits or settings.rates):
        return Placement(settings.pool, priority, fair)
    limits = _lowest((filled(limit.key, input), limit.at_most) for limit in settings.limits)
    rates = _lowest((filled(rate.key, input), rate.per_s) for rate in settings.rates)
    return Placement(settings.pool, priority, fair, limits, rates)


def _lowest(bounds: Iterable[tuple[str, Bound]]) -> tuple[tuple[str, Bound], ...]:
    """Two texts may be the same key."""
    lowest: dict[str, Bound] = {}
    for key, bound in bounds:
        lowest[key] = min(bound, lowest.get(key, bound))
    return tuple(lowest.items())


def filled(text: str, input: Any) -> str:
    """Return a key with its references filled in."""
    return as_key("".join(part if isinstance(part, str) else _value(part, input) for part in _parts(text)))


def as_key(text: str) -> str:
    """Return text as a key. A long one becomes its beginning and a hash: keys are in indexes."""
    key = "".join(character if character >= " " else " " for character in text)
    if len(key) > KEY_LENGTH_MAX:
        key = f"{key[: KEY_LENGTH_MAX // 2]}...{hashlib.sha256(key.encode()).hexdigest()}"
    return key


def _value(reference: _Reference, input: Any) -> str:
    path, default = reference
    value = paths.read(input, path)
    if default is not None and (value is MISSING or value is None):
        value = orjson.loads(default)
    return render(value)


@lru_cache(maxsize=1_000)
def _parts(text: str) -> tuple[str | _Reference, ...]:
    """Split a text into literal parts and references. The compiler has checked the references: they read the input."""
    parts: list[str | _Reference] = []
    end = 0
    for found in find(text):
        parsed = parse(found.text)
        assert parsed is not None, text
        parts += [text[end : found.start], (parsed.segments[1:], parsed.default)]
        end = found.end
    return (*parts, text[end:])

"""Computes the simple expressions of most conditions in Python: their results are the guest's, to the byte.

`compile_simple` reads a small part of JavaScript: literals, `__v[...]` and `__t[...]` with paths after them,
comparisons, `&& || ??`, `! typeof`, `?:`, arithmetic. It returns None for a source that has anything else. Every case
of which this file is not sure raises Unsure: values that are not plain JSON, large values, errors, conversions from one
type to another. Then the guest decides; an expression has no effects, so it may begin again there. Any addition has to
pass tests/unit/executor/blocks/sandbox/test_simple.py, which compares both over generated expressions and values.

Values are those of Python's JSON, and UNDEFINED. Numbers are int up to 64 bits or finite float: NaN, infinities and
arithmetic beyond 2^53 are the guest's. Integers that the guest would refuse, because it would change them, are passed
on and compared as they are. Nothing here distinguishes -0 from 0.

`parse` reads the source, `apply` has what is computed. This file bounds and checks the values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any, Final

from executor.blocks.sandbox.simple.apply import UNDEFINED, Closure, Unsure, whole
from executor.blocks.sandbox.simple.parse import SOURCE_MAX, compile_simple, is_well_formed
from executor.kernel.values.payload import Bound

__all__ = ["Closure", "Closures", "Unsure", "compile_simple", "evaluate_simple"]

# Far below the guest's limits of time and memory, so that its bounds need no imitation.
_CALLS_MAX: Final = 64
_VALUES_MAX: Final = 64 * 1024  # characters of all values, each item counted as _ITEM more
_ITEM: Final = 32
_DEPTH_MAX: Final = 60
# Characters of sources, whose closures take 200 times as much at worst; each source counts as 64 more.
_KEPT_MAX: Final = 128 * 1024
_INTEGERS: Final = range(-(2**63), 2**64)  # JSON in and out of the guest keeps these as integers
_PLAIN: Final = frozenset([str, int, float, bool, type(None), list, dict])


class Closures:
    """Compiled once. All are dropped when their sources are too many."""

    def __init__(self) -> None:
        self._kept: dict[str, Closure | None] = {}
        self._size = 0

    def of(self, source: str) -> Closure | None:
        try:
            return self._kept[source]
        except KeyError:
            pass
        closure = compile_simple(source)
        if len(source) <= SOURCE_MAX:
            if self._size > _KEPT_MAX:
                self._kept.clear()
                self._size = 0
            self._kept[source] = closure
            self._size += 64 + len(source)
        return closure

    def __len__(self) -> int:
        return len(self._kept)


def evaluate_simple(closures: Sequence[Closure], calls: Sequence[Bound], output_bytes: int) -> list[Any]:
    """Return the guest's answers for all of them, as they come out of JSON. Raises Unsure."""
    if len(calls) > _CALLS_MAX:
        raise Unsure
    room = _VALUES_MAX
    for call in calls:
        room = _checked([call.values, call.texts], room)
    results = [_result(closure(call.values, call.texts)) for closure, call in zip(closures, calls, strict=True)]
    if 8 + sum(6 * len(result) + 3 if type(result) is str else 25 for result in results) > output_bytes:
        raise Unsure
    return results


def _checked(level: Collection[Any], room: int) -> int:
    """Check that a value is small and that JSON or JavaScript would change nothing in it. Returns the room that is
    left. Raises Unsure. Level by level, with a loop in C for each type: values are larger than expressions."""
    for _ in range(_DEPTH_MAX):
        kinds = set(map(type, level))
        if not kinds <= _PLAIN:
            raise Unsure
        if int in kinds:
            numbers = [value for value in level if type(value) is int]
            if min(numbers) not in _INTEGERS or max(numbers) not in _INTEGERS:
                raise Unsure
        if float in kinds and not all(math.isfinite(value) for value in level if type(value) is float):
            raise Unsure
        below: list[Any] = []
        if str in kinds:
            room = _spent(room, [value for value in level if type(value) is str])
        if list in kinds:
            lists = [value for value in level if type(value) is list]
            room -= _ITEM * (len(lists) + sum(map(len, lists)))
            if room < 0:
                raise Unsure
            below += chain.from_iterable(lists)
        if dict in kinds:
            objects = [value for value in level if type(value) is dict]
            room -= _ITEM * (len(objects) + sum(map(len, objects)))
            if room < 0:
                raise Unsure
            names = list(chain.from_iterable(objects))
            if set(map(type, names)) - {str}:
                raise Unsure
            room = _spent(room, names)
            below += chain.from_iterable(value.values() for value in objects)
        if not below:
            return room
        level = below
    raise Unsure


def _spent(room: int, texts: list[str]) -> int:
    room -= sum(map(len, texts))
    if room < 0 or not is_well_formed("".join(texts)):
        raise Unsure
    return room


def _result(value: Any) -> Any:
    """Return the value as JSON.stringify writes it and a JSON parser reads it."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is str:
        return value
    if value is UNDEFINED:
        return None
    if kind is float:
        return whole(value) if value.is_integer() else value
    raise Unsure  # the order of its members, the digits of its numbers

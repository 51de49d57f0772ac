"""The closures of the parts of a simple expression, over the bound values and texts."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_TEXT_MAX: Final = 16 * 1024  # characters of a text that is put together
_SAFE: Final = 2**53  # integers up to here are exact as doubles

Values = Mapping[str, Any]
Closure = Callable[[Values, Values], Any]


class Unsure(Exception):
    """The guest has to compute this."""


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = _Undefined()
# Members inherited from Object.prototype.
_INHERITED: Final = re.compile(
    "__(proto|(define|lookup)[GS]etter)__|constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable"
    "|to(Locale)?String|valueOf"
)


def applied(of: Callable[[Any, Any], Any], left: Closure, right: Closure) -> Closure:
    return lambda values, texts: of(left(values, texts), right(values, texts))


def refuted(of: Callable[[Any, Any], bool], left: Closure, right: Closure) -> Closure:
    return lambda values, texts: not of(left(values, texts), right(values, texts))


def constant(value: Any) -> Closure:
    return lambda values, texts: value


def bound_to(name: str, of_values: bool) -> Closure:
    def bound(values: Values, texts: Values) -> Any:
        try:
            return (values if of_values else texts)[name]
        except KeyError:
            raise Unsure from None

    return bound


def member_of(of: Closure, name: str) -> Closure:
    def member(values: Values, texts: Values) -> Any:
        return _get(of(values, texts), name)

    return member


def item_of(of: Closure, key: Closure) -> Closure:
    def item(values: Values, texts: Values) -> Any:
        return _get(of(values, texts), key(values, texts))

    return item


def _get(of: Any, key: Any) -> Any:
    kind, key_kind = type(of), type(key)
    if key_kind is int and key >= 0:
        if kind is list:
            return of[key] if key < len(of) else UNDEFINED
        if kind is str and of.isascii():
            return of[key] if key < len(of) else UNDEFINED
        key, key_kind = str(key), str
    if key_kind is str:
        if kind is dict:
            found = of.get(key, UNDEFINED)
            if found is UNDEFINED and _INHERITED.fullmatch(key):
                raise Unsure
            return found
        if key == "length":
            if kind is list:
                return len(of)
            if kind is str:
                return len(of) if of.isascii() else len(of.encode("utf-16-le")) // 2
    raise Unsure


def truthy(value: Any) -> bool:
    return value is not UNDEFINED and (type(value) is dict or type(value) is list or bool(value))


def choice_of(test: Closure, yes: Closure, no: Closure) -> Closure:
    return lambda values, texts: (yes if truthy(test(values, texts)) else no)(values, texts)


def falsy(value: Any) -> bool:
    return not truthy(value)


def nullish(value: Any) -> bool:
    return value is None or value is UNDEFINED


def continued(goes_on: Callable[[Any], bool], left: Closure, right: Closure) -> Closure:
    def either(values: Values, texts: Values) -> Any:
        found = left(values, texts)
        return right(values, texts) if goes_on(found) else found

    return either


def negated(of: Closure) -> Closure:
    return lambda values, texts: not truthy(of(values, texts))


def negative_of(of: Closure) -> Closure:
    def negative(values: Values, texts: Values) -> Any:
        found = of(values, texts)
        if type(found) is not int and type(found) is not float:
            raise Unsure
        return -found

    return negative


_TYPES = {bool: "boolean", int: "number", float: "number", str: "string", _Undefined: "undefined"}


def type_of(of: Closure) -> Closure:
    return lambda values, texts: _TYPES.get(type(of(values, texts)), "object")


_KINDS = {bool: 1, int: 2, float: 2, str: 3, dict: 4, list: 4, type(None): 5, _Undefined: 6}


def _strictly_equal(a: Any, b: Any) -> bool:
    kind = _KINDS[type(a)]
    if kind != _KINDS[type(b)]:
        return False
    if kind == 4:  # one object or two?
        raise Unsure
    return bool(a == b)


def _loosely_equal(a: Any, b: Any) -> bool:
    kinds = _KINDS[type(a)], _KINDS[type(b)]
    if kinds[0] >= 5 or kinds[1] >= 5:  # null and undefined equal each other, and nothing else
        return kinds[0] >= 5 and kinds[1] >= 5
    if kinds[0] != kinds[1]:
        raise Unsure
    return _strictly_equal(a, b)


def _relation(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def relation(a: Any, b: Any) -> bool:
        if type(a) is str and type(b) is str:
            if a.isascii() and b.isascii():
                return holds(a, b)
            return holds(a.encode("utf-16-be"), b.encode("utf-16-be"))  # by units, not by characters
        left, right = _number(a), _number(b)
        return left is not None and right is not None and holds(left, right)

    return relation


def _number(value: Any) -> float | None:
    """Convert a value for a comparison, or return None for NaN. Raises Unsure for texts and objects."""
    kind = type(value)
    if kind is int or kind is float or kind is bool:
        return value  # type: ignore[no-any-return]  # `kind` is its type
    if value is None:
        return 0
    if value is UNDEFINED:
        return None
    raise Unsure


def _numbers(a: Any, b: Any) -> bool:
    """Return True for two numbers whose arithmetic is exact, or as inexact as the guest's."""
    are_numbers = (type(a) is int or type(a) is float) and (type(b) is int or type(b) is float)
    return are_numbers and -_SAFE <= a <= _SAFE and -_SAFE <= b <= _SAFE


def _safe(value: float) -> float:
    if -_SAFE <= value <= _SAFE:
        return value
    raise Unsure


def _add(a: Any, b: Any) -> Any:
    if _numbers(a, b):
        return _safe(a + b)
    if type(a) is not str and type(b) is not str:
        raise Unsure
    text = _as_text(a) + _as_text(b)
    if len(text) > _TEXT_MAX:
        raise Unsure
    return text


def _as_text(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # `kind` is its type
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if value is UNDEFINED:
        return "undefined"
    if kind is int:
        return str(value)
    if kind is float and value.is_integer():
        return str(whole(value))
    raise Unsure


def whole(value: float) -> int:
    return int(_safe(value))


def _arithmetic(of: Callable[[Any, Any], Any], *, divides: bool = False) -> Callable[[Any, Any], Any]:
    def computed(a: Any, b: Any) -> Any:
        if not _numbers(a, b) or (divides and b == 0):
            raise Unsure
        return _safe(of(a, b))

    return computed


def _rest(a: float, b: float) -> float:
    rest = math.fmod(a, b)
    return int(rest) if type(a) is int and type(b) is int else rest


def _alike(of: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        if a is None or a is UNDEFINED or _KINDS[type(a)] != _KINDS[type(b)]:
            raise Unsure
        return of(a, b)

    return compared


Operators = Mapping[str, Callable[[Any, Any], Any]]
RELATIONS: Final[Operators] = {
    "<": _relation(operator.lt),
    ">": _relation(operator.gt),
    "<=": _relation(operator.le),
    ">=": _relation(operator.ge),
}
# `refuted` makes the inequalities of them.
EQUALITIES: Final[Operators] = {
    "===": _strictly_equal,
    "!==": _strictly_equal,
    "==": _loosely_equal,
    "!=": _loosely_equal,
}
SUMS: Final[Operators] = {"+": _add, "-": _arithmetic(operator.sub)}
PRODUCTS: Final[Operators] = {
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(operator.truediv, divides=True),
    "%": _arithmetic(_rest, divides=True),
}
# Comparisons of values of one type: others raise Unsure.
ALIKE_RELATIONS: Final[Operators] = {sign: _alike(of) for sign, of in RELATIONS.items()}
ALIKE_EQUALITIES: Final[Operators] = dict.fromkeys(EQUALITIES, _alike(_strictly_equal))

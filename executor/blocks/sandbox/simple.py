"""Computes the simple expressions of most conditions in Python: their results are the guest's, to the byte.

`compile_simple` reads a small part of JavaScript: literals, `__v[...]` and `__t[...]` with paths after them,
comparisons, `&& || ??`, `! typeof`, `?:`, arithmetic. It returns None for a source that has anything else. Every case
of which this file is not sure raises Unsure: values that are not plain JSON, large values, errors, sums of anything but
numbers or texts, conversions from one type to another. Then the guest decides; an expression has no effects, so it may
begin again there. Any addition has to pass tests/unit/executor/blocks/sandbox/test_simple.py, which compares both over
generated expressions and values.

Values are those of Python's JSON, and UNDEFINED. Numbers are int up to 64 bits or finite float: NaN, infinities and
arithmetic beyond 2^53 are the guest's. Integers that the guest would refuse, because it would change them, are passed
on and compared as they are. Nothing here distinguishes -0 from 0.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from executor.kernel.values.payload import Bound

# Far below the guest's limits of time and memory, so that its bounds need no imitation.
_CALLS_MAX = 64
_SOURCE_MAX = 1024  # characters
_TOKENS_MAX = 200
_NESTED_MAX = 24
_DIGITS_MAX = 15
_TEXT_MAX = 16 * 1024  # characters of a text that is put together
_VALUES_MAX = 64 * 1024  # characters of all values, each item counted as _ITEM more
_ITEM = 32
_DEPTH_MAX = 60
_KEPT_MAX = (
    128 * 1024
)  # characters of sources, whose closures take 200 times as much at worst; each source counts as 64 more
_SAFE: Final = 2**53  # integers up to here are exact as doubles
_INTEGERS: Final = range(-(2**63), 2**64)  # JSON in and out of the guest keeps these as integers

Values = Mapping[str, Any]
Closure = Callable[[Values, Values], Any]


class Unsure(Exception):
    """The guest has to compute this."""


class _NotSimple(Exception):
    pass


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = _Undefined()

# Members inherited from Object.prototype.
_INHERITED = re.compile(
    "__(proto|(define|lookup)[GS]etter)__|constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable"
    "|to(Locale)?String|valueOf"
)
_PLAIN = frozenset([str, int, float, bool, type(None), list, dict])
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<number>(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,6})?(?![\w$.\\]|[^\x00-\x7f]))
    | (?P<text>
        "(?:[^"\\\x00-\x1f\u2028\u2029\ud800-\udfff]|\\["\\/bfnrtu])*"
      | '[^'\\\x00-\x1f\u2028\u2029\ud800-\udfff]*'
      )
    | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*(?![\w$\\]|[^\x00-\x7f]))
    | (?P<sign>
        ===|!==|==|!=|<=|>=|&&|\|\||\?\?|[()\[\]:.!%]
      | \?(?!\.)|<(?![<!])|>(?!>)|\+(?!\+)|-(?!-)|\*(?!\*)|/(?![/*])
      )
    )""",
    re.VERBOSE,
)
_END = ("end", "")


def compile_simple(source: str) -> Closure | None:
    """Compile the expression, or return None if it needs the guest."""
    if len(source) > _SOURCE_MAX:
        return None
    try:
        return _Parser(source).whole()
    except _NotSimple:
        return None


def compile_alike(source: str) -> Closure | None:
    """Like compile_simple, for expressions that decide whether something is safe: a comparison of values of two types,
    or with null or undefined, raises Unsure."""
    try:
        return _AlikeParser(source).whole() if len(source) <= _SOURCE_MAX else None
    except _NotSimple:
        return None


class Closures:
    """Compiled once. All are dropped when their sources are too many."""

    def __init__(self) -> None:
        self._kept: dict[str, Closure | None] = {}
        self._size = 0

    def of(self, source: str) -> Closure | None:
        """See compile_simple."""
        try:
            return self._kept[source]
        except KeyError:
            pass
        closure = compile_simple(source)
        if len(source) <= _SOURCE_MAX:
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
    if room < 0 or not _is_well_formed("".join(texts)):
        raise Unsure
    return room


def _is_well_formed(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _result(value: Any) -> Any:
    """Return the value as JSON.stringify writes it and a JSON parser reads it."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is str:
        return value
    if value is UNDEFINED:
        return None
    if kind is float:
        return _whole(value) if value.is_integer() else value
    raise Unsure  # the order of its members, the digits of its numbers


def _whole(value: float) -> int:
    """Raises Unsure."""
    if -_SAFE <= value <= _SAFE:
        return int(value)
    raise Unsure


class _Parser:
    """Precedence as in the grammar of JavaScript, a method for each level. Raises _NotSimple."""

    def __init__(self, source: str) -> None:
        self._tokens = _tokens(source)
        self._at = 0
        self._nested = 0

    def whole(self) -> Closure:
        found = self._conditional()
        if self._tokens[self._at] is not _END:
            raise _NotSimple
        return found

    def _take(self, *signs: str) -> str | None:
        """Return the next token, if it is one of these signs."""
        kind, text = self._tokens[self._at]
        if kind != "sign" or text not in signs:
            return None
        self._at += 1
        return text

    def _expect(self, sign: str) -> None:
        if self._take(sign) is None:
            raise _NotSimple

    def _conditional(self) -> Closure:
        self._nested += 1
        if self._nested > _NESTED_MAX:
            raise _NotSimple
        test = self._short()
        if self._take("?"):
            yes = self._conditional()
            self._expect(":")
            test = _either(test, yes, self._conditional())
        self._nested -= 1
        return test

    def _short(self) -> Closure:
        """`??` does not mix with `&&` and `||`: the rest of such a mixture is not simple."""
        left = self._equality()
        if self._take("??"):
            left = _unless_nullish(left, self._equality())
            while self._take("??"):
                left = _unless_nullish(left, self._equality())
            return left
        left = self._all(left)
        while self._take("||"):
            left = _or(left, self._all(self._equality()))
        return left

    def _all(self, left: Closure) -> Closure:
        while self._take("&&"):
            left = _and(left, self._equality())
        return left

    def _equality(self) -> Closure:
        left = self._relation()
        while sign := self._take("===", "!==", "==", "!="):
            left = _equality(left, self._relation(), strict=len(sign) == 3, negated=sign[0] == "!")
        return left

    def _relation(self) -> Closure:
        left = self._sum()
        while sign := self._take("<", ">", "<=", ">="):
            left = _applied(_RELATIONS[sign], left, self._sum())
        return left

    def _sum(self) -> Closure:
        left = self._product()
        while sign := self._take("+", "-"):
            left = _applied(_add if sign == "+" else _subtract, left, self._product())
        return left

    def _product(self) -> Closure:
        left = self._unary()
        while sign := self._take("*", "/", "%"):
            left = _applied(_PRODUCTS[sign], left, self._unary())
        return left

    def _unary(self) -> Closure:
        self._nested += 1
        if self._nested > _NESTED_MAX:
            raise _NotSimple
        kind, text = self._tokens[self._at]
        if self._take("!"):
            found = _not(self._unary())
        elif self._take("-"):
            found = _negative(self._unary())
        elif kind == "word" and text == "typeof":
            self._at += 1
            found = _type_of(self._unary())
        else:
            found = self._path()
        self._nested -= 1
        return found

    def _path(self) -> Closure:
        found = self._primary()
        while sign := self._take(".", "["):
            if sign == ".":
                found = _member(found, self._name())
            else:
                found = _item(found, self._conditional())
                self._expect("]")
        return found

    def _primary(self) -> Closure:
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            if len(text) > _DIGITS_MAX:
                raise _NotSimple
            return _constant(float(text) if "." in text else int(text))
        if kind == "text":
            return _constant(_text(text))
        if kind == "word" and text in _WORDS:
            return _constant(_WORDS[text])
        if kind == "word" and text in ("__v", "__t"):
            return _bound(self._bound_name(), of_values=text == "__v")
        if kind == "sign" and text == "(":
            found = self._conditional()
            self._expect(")")
            return found
        raise _NotSimple

    def _name(self) -> str:
        kind, text = self._tokens[self._at]
        if kind != "word":
            raise _NotSimple
        self._at += 1
        return text

    def _bound_name(self) -> str:
        if self._take("."):
            return self._name()
        self._expect("[")
        kind, text = self._tokens[self._at]
        if kind != "text":
            raise _NotSimple
        self._at += 1
        self._expect("]")
        return _text(text)


class _AlikeParser(_Parser):
    def _equality(self) -> Closure:
        left = self._relation()
        while sign := self._take("===", "!==", "==", "!="):
            equal = _strictly_equal if sign[0] == "=" else _differ
            left = _applied(_alike(equal), left, self._relation())
        return left

    def _relation(self) -> Closure:
        left = self._sum()
        while sign := self._take("<", ">", "<=", ">="):
            left = _applied(_alike(_RELATIONS[sign]), left, self._sum())
        return left


def _alike(of: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        if a is None or a is UNDEFINED or _KINDS[type(a)] != _KINDS[type(b)]:
            raise Unsure
        return of(a, b)

    return compared


def _differ(a: Any, b: Any) -> bool:
    return not _strictly_equal(a, b)


def _tokens(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(source.rstrip(" \t\r\n"))
    while at < end:
        match = _TOKEN.match(source, at)
        if match is None or match.lastgroup is None or len(found) >= _TOKENS_MAX:
            raise _NotSimple
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*found, _END]


def _text(token: str) -> str:
    """A JSON string is the same in JavaScript; the compiler writes the names of references in double quotes."""
    if token[0] == "'":
        return token[1:-1]
    try:
        text: str = json.loads(token)
    except ValueError:
        raise _NotSimple from None
    if not _is_well_formed(text):
        raise _NotSimple
    return text


def _constant(value: Any) -> Closure:
    return lambda values, texts: value


def _bound(name: str, of_values: bool) -> Closure:
    def bound(values: Values, texts: Values) -> Any:
        try:
            return (values if of_values else texts)[name]
        except KeyError:
            raise Unsure from None

    return bound


def _member(of: Closure, name: str) -> Closure:
    def member(values: Values, texts: Values) -> Any:
        return _get(of(values, texts), name)

    return member


def _item(of: Closure, key: Closure) -> Closure:
    def item(values: Values, texts: Values) -> Any:
        return _get(of(values, texts), key(values, texts))

    return item


def _get(of: Any, key: Any) -> Any:
    """`of[key]`."""
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


def _truthy(value: Any) -> bool:
    return value is not UNDEFINED and (type(value) is dict or type(value) is list or bool(value))


def _either(test: Closure, yes: Closure, no: Closure) -> Closure:
    return lambda values, texts: (yes if _truthy(test(values, texts)) else no)(values, texts)


def _and(left: Closure, right: Closure) -> Closure:
    def both(values: Values, texts: Values) -> Any:
        found = left(values, texts)
        return right(values, texts) if _truthy(found) else found

    return both


def _or(left: Closure, right: Closure) -> Closure:
    def either(values: Values, texts: Values) -> Any:
        found = left(values, texts)
        return found if _truthy(found) else right(values, texts)

    return either


def _unless_nullish(left: Closure, right: Closure) -> Closure:
    def first(values: Values, texts: Values) -> Any:
        found = left(values, texts)
        return right(values, texts) if found is None or found is UNDEFINED else found

    return first


def _not(of: Closure) -> Closure:
    return lambda values, texts: not _truthy(of(values, texts))


def _negative(of: Closure) -> Closure:
    def negative(values: Values, texts: Values) -> Any:
        found = of(values, texts)
        if type(found) is not int and type(found) is not float:
            raise Unsure
        return -found

    return negative


_TYPES = {bool: "boolean", int: "number", float: "number", str: "string", _Undefined: "undefined"}


def _type_of(of: Closure) -> Closure:
    return lambda values, texts: _TYPES.get(type(of(values, texts)), "object")


def _equality(left: Closure, right: Closure, *, strict: bool, negated: bool) -> Closure:
    equal = _strictly_equal if strict else _loosely_equal
    return lambda values, texts: equal(left(values, texts), right(values, texts)) is not negated


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


def _applied(of: Callable[[Any, Any], Any], left: Closure, right: Closure) -> Closure:
    return lambda values, texts: of(left(values, texts), right(values, texts))


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


_RELATIONS = {
    "<": _relation(operator.lt),
    ">": _relation(operator.gt),
    "<=": _relation(operator.le),
    ">=": _relation(operator.ge),
}


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
        return str(_whole(value))
    raise Unsure


def _subtract(a: Any, b: Any) -> Any:
    if not _numbers(a, b):
        raise Unsure
    return _safe(a - b)


def _multiply(a: Any, b: Any) -> Any:
    if not _numbers(a, b):
        raise Unsure
    return _safe(a * b)


def _divide(a: Any, b: Any) -> Any:
    if not _numbers(a, b) or b == 0:
        raise Unsure
    return _safe(a / b)


def _rest(a: Any, b: Any) -> Any:
    if not _numbers(a, b) or b == 0:
        raise Unsure
    rest = math.fmod(a, b)
    return int(rest) if type(a) is int and type(b) is int else rest


_PRODUCTS = {"*": _multiply, "/": _divide, "%": _rest}

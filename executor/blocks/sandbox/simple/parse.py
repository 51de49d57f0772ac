"""The tokens and the grammar of simple expressions: from the source to a closure."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from executor.blocks.sandbox.simple import apply
from executor.blocks.sandbox.simple.apply import Closure

SOURCE_MAX: Final = 1024  # characters
_NESTED_MAX: Final = 24
_DIGITS_MAX: Final = 15
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": apply.UNDEFINED}


_TOKENS_MAX: Final = 200
_TOKEN: Final = re.compile(
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
END: Final = ("end", "")


class NotSimple(Exception):
    """The expression needs the guest."""


def tokens_of(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(source.rstrip(" \t\r\n"))
    while at < end:
        match = _TOKEN.match(source, at)
        if match is None or match.lastgroup is None or len(found) >= _TOKENS_MAX:
            raise NotSimple
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*found, END]


def text_of(token: str) -> str:
    """A JSON string is the same in JavaScript; the compiler writes the names of references in double quotes."""
    if token[0] == "'":
        return token[1:-1]
    try:
        text: str = json.loads(token)
    except ValueError:
        raise NotSimple from None
    if not is_well_formed(text):
        raise NotSimple
    return text


def is_well_formed(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def compile_simple(source: str, *, alike: bool = False) -> Closure | None:
    """Compile the expression, or return None if it needs the guest. `alike` is for expressions that decide whether
    something is safe: a comparison of values of two types, or with null or undefined, raises Unsure."""
    if len(source) > SOURCE_MAX:
        return None
    try:
        return Parser(source, alike=alike).whole()
    except NotSimple:
        return None


class Parser:
    """Precedence as in the grammar of JavaScript. Raises NotSimple."""

    def __init__(self, source: str, *, alike: bool) -> None:
        self._tokens = tokens_of(source)
        self._at = 0
        self._nested = 0
        compared = (apply.ALIKE_EQUALITIES, apply.ALIKE_RELATIONS) if alike else (apply.EQUALITIES, apply.RELATIONS)
        self._levels = (*compared, apply.SUMS, apply.PRODUCTS)  # the last binds closest

    def whole(self) -> Closure:
        found = self._conditional()
        if self._tokens[self._at] is not END:
            raise NotSimple
        return found

    def _take(self, *signs: str) -> str | None:
        kind, text = self._tokens[self._at]
        if kind != "sign" or text not in signs:
            return None
        self._at += 1
        return text

    def _expect(self, sign: str) -> None:
        if self._take(sign) is None:
            raise NotSimple

    def _conditional(self) -> Closure:
        self._nested += 1
        if self._nested > _NESTED_MAX:
            raise NotSimple
        test = self._short()
        if self._take("?"):
            yes = self._conditional()
            self._expect(":")
            test = apply.choice_of(test, yes, self._conditional())
        self._nested -= 1
        return test

    def _short(self) -> Closure:
        """`??` does not mix with `&&` and `||`: the rest of such a mixture is not simple."""
        first = left = self._binary()
        while self._take("??"):
            left = apply.continued(apply.nullish, left, self._binary())
        if left is not first:
            return left
        left = self._all(left)
        while self._take("||"):
            left = apply.continued(apply.falsy, left, self._all(self._binary()))
        return left

    def _all(self, left: Closure) -> Closure:
        while self._take("&&"):
            left = apply.continued(apply.truthy, left, self._binary())
        return left

    def _binary(self, level: int = 0) -> Closure:
        if level == len(self._levels):
            return self._unary()
        operators = self._levels[level]
        left = self._binary(level + 1)
        while sign := self._take(*operators):
            joined = apply.refuted if sign.startswith("!") else apply.applied
            left = joined(operators[sign], left, self._binary(level + 1))
        return left

    def _unary(self) -> Closure:
        self._nested += 1
        if self._nested > _NESTED_MAX:
            raise NotSimple
        kind, text = self._tokens[self._at]
        if self._take("!"):
            found = apply.negated(self._unary())
        elif self._take("-"):
            found = apply.negative_of(self._unary())
        elif kind == "word" and text == "typeof":
            self._at += 1
            found = apply.type_of(self._unary())
        else:
            found = self._path()
        self._nested -= 1
        return found

    def _path(self) -> Closure:
        found = self._primary()
        while sign := self._take(".", "["):
            if sign == ".":
                found = apply.member_of(found, self._name())
            else:
                found = apply.item_of(found, self._conditional())
                self._expect("]")
        return found

    def _primary(self) -> Closure:
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            if len(text) > _DIGITS_MAX:
                raise NotSimple
            return apply.constant(float(text) if "." in text else int(text))
        if kind == "text":
            return apply.constant(text_of(text))
        if kind == "word" and text in _WORDS:
            return apply.constant(_WORDS[text])
        if kind == "word" and text in ("__v", "__t"):
            return apply.bound_to(self._bound_name(), of_values=text == "__v")
        if kind == "sign" and text == "(":
            found = self._conditional()
            self._expect(")")
            return found
        raise NotSimple

    def _name(self) -> str:
        kind, text = self._tokens[self._at]
        if kind != "word":
            raise NotSimple
        self._at += 1
        return text

    def _bound_name(self) -> str:
        if self._take("."):
            return self._name()
        self._expect("[")
        kind, text = self._tokens[self._at]
        if kind != "text":
            raise NotSimple
        self._at += 1
        self._expect("]")
        return text_of(text)

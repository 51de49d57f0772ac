"""The grammar of simple expressions: from the source to a closure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from executor.blocks.sandbox.simple import apply
from executor.blocks.sandbox.simple.apply import Closure, Operators
from executor.blocks.sandbox.simple.lex import END, NotSimple, text_of, tokens_of

SOURCE_MAX: Final = 1024  # characters
_NESTED_MAX: Final = 24
_DIGITS_MAX: Final = 15
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": apply.UNDEFINED}


def compile_simple(source: str) -> Closure | None:
    """Compile the expression, or return None if it needs the guest."""
    return _compiled(source, alike=False)


def compile_alike(source: str) -> Closure | None:
    """Like compile_simple, for expressions that decide whether something is safe: a comparison of values of two types,
    or with null or undefined, raises Unsure."""
    return _compiled(source, alike=True)


def _compiled(source: str, *, alike: bool) -> Closure | None:
    if len(source) > SOURCE_MAX:
        return None
    try:
        return Parser(source, alike=alike).whole()
    except NotSimple:
        return None


class Parser:
    """Precedence as in the grammar of JavaScript, a method for each level. Raises NotSimple."""

    def __init__(self, source: str, *, alike: bool = False) -> None:
        self._tokens = tokens_of(source)
        self._at = 0
        self._nested = 0
        self._equalities = apply.ALIKE_EQUALITIES if alike else apply.EQUALITIES
        self._relations = apply.ALIKE_RELATIONS if alike else apply.RELATIONS

    def whole(self) -> Closure:
        found = self._conditional()
        if self._tokens[self._at] is not END:
            raise NotSimple
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
        left = self._equality()
        if self._take("??"):
            left = apply.unless_nullish(left, self._equality())
            while self._take("??"):
                left = apply.unless_nullish(left, self._equality())
            return left
        left = self._all(left)
        while self._take("||"):
            left = apply.either_of(left, self._all(self._equality()))
        return left

    def _all(self, left: Closure) -> Closure:
        while self._take("&&"):
            left = apply.both_of(left, self._equality())
        return left

    def _chain(self, below: Callable[[], Closure], operators: Operators) -> Closure:
        left = below()
        while sign := self._take(*operators):
            left = apply.applied(operators[sign], left, below())
        return left

    def _equality(self) -> Closure:
        left = self._relation()
        while sign := self._take(*self._equalities):
            left = apply.compared(self._equalities[sign], left, self._relation(), negated=sign[0] == "!")
        return left

    def _relation(self) -> Closure:
        return self._chain(self._sum, self._relations)

    def _sum(self) -> Closure:
        return self._chain(self._product, apply.SUMS)

    def _product(self) -> Closure:
        return self._chain(self._unary, apply.PRODUCTS)

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

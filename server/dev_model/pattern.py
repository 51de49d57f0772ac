"""Texts that a regular expression matches, by Python's own reading of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final

LENGTH_MAX: Final = 10_000
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_- .,:;/!?#@%&+*=<>()[]{}|~^$\"'`\\"
_CLASSES: Final = {"CATEGORY_DIGIT": "0123456789", "CATEGORY_SPACE": " ", "CATEGORY_WORD": _LETTERS[:63]}


def text_for(pattern: str, n: int = 0, least: int = 0) -> str:
    """Variant `n` of a text that matches, with at least so many characters if the pattern permits it. A text that
    cannot be made, for look-around and the like, is the plainest one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the parser, about future syntax
        try:
            parts: Any = _parser().parse(pattern)
        except (re.error, RecursionError, OverflowError):
            return "example"
    text = ""
    for more in (0, 1, 2, 4, 8, 16, 32, 64, 128, 512, least):
        text = _Writer(n, more).text(parts)
        if len(text) >= least:
            break
    return text


def _parser() -> Any:
    """Private in Python, and there since its first version with `re`."""
    return import_module("re._parser")


class _Writer:
    """`n` chooses among what is possible, `more` is added to the repetitions."""

    def __init__(self, n: int, more: int) -> None:
        self._n = n
        self._more = more
        self._groups: dict[int, str] = {}
        self._length = 0

    def text(self, parts: Iterable[tuple[Any, Any]]) -> str:
        return "".join(self._part(str(kind), given) for kind, given in parts)

    def _part(self, kind: str, given: Any) -> str:
        match kind:
            case "LITERAL":
                return chr(given)
            case "NOT_LITERAL":
                return self._choose(lambda char: char != chr(given))
            case "ANY":
                return self._choose(lambda char: True)
            case "IN":
                return self._in(given)
            case "BRANCH":
                branches = given[1]
                return self.text(branches[self._n % len(branches)])
            case "SUBPATTERN":
                text = self.text(given[3])
                if given[0] is not None:
                    self._groups[given[0]] = text
                return text
            case "ATOMIC_GROUP":
                return self.text(given)
            case "GROUPREF":
                return self._groups.get(given, "")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self._repeated(*given)
            case _:  # AT, ASSERT and what else has no text of its own
                return ""

    def _repeated(self, least: int, most: int, inner: Any) -> str:
        times = min(least + self._more + (1 if least == 0 and self._n % 2 else 0), int(most))
        found: list[str] = []
        for _ in range(times):
            if self._length > LENGTH_MAX:
                break
            found.append(self.text(inner))
            self._length += len(found[-1])
        return "".join(found)

    def _in(self, given: list[tuple[Any, Any]]) -> str:
        negated = str(given[0][0]) == "NEGATE"
        tests = [_test(str(kind), value) for kind, value in given if str(kind) != "NEGATE"]
        if negated:
            return self._choose(lambda char: not any(test(char) for test in tests))
        known = self._choose(lambda char: any(test(char) for test in tests))
        if any(test(known) for test in tests):
            return known
        kind, value = given[0]  # letters that are not in the list above
        return chr(value[0] if str(kind) == "RANGE" else value) if str(kind) in ("RANGE", "LITERAL") else known

    def _choose(self, fits: Callable[[str], bool]) -> str:
        found = [char for char in _LETTERS if fits(char)]
        return found[self._n % len(found)] if found else "a"


def _test(kind: str, value: Any) -> Callable[[str], bool]:
    match kind:
        case "LITERAL":
            return lambda char: ord(char) == value
        case "RANGE":
            return lambda char: bool(value[0] <= ord(char) <= value[1])
        case _:
            name = str(value)
            chars = _CLASSES.get(name.replace("_NOT_", "_"), "")
            return lambda char: (char in chars) != ("_NOT_" in name)

"""The text of a query: where its parameters are. Independent of databases.

A parameter is `:name`, in every database. Texts, quoted names and comments have no parameters, and `::type` is none.
Values never become part of the text: each database gets the names or numbers of its own placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

_TOKEN: Final = re.compile(
    r"""
      --[^\n]*
    | /\*(?P<comment>)
    | \b[eE]'(?:[^'\\]|\\.|'')*(?:'|$)
    | '(?:[^']|'')*(?:'|$)
    | "(?:[^"]|"")*(?:"|$)
    | `[^`]*(?:`|$)
    | (?<![\w$])\$(?P<tag>[A-Za-z_]*)\$
    | ::
    | (?<![\w\])]):(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
# In MySQL a backslash escapes in texts, `#` begins a comment, and comments do not nest.
_TOKEN_OF_MYSQL: Final = re.compile(
    r"""
      --(?=\s|\Z)[^\n]*
    | \#[^\n]*
    | /\*.*?(?:\*/|\Z)
    | '(?:[^'\\]|\\.|'')*(?:'|\Z)
    | "(?:[^"\\]|\\.|"")*(?:"|\Z)
    | `[^`]*(?:`|\Z)
    | (?<![\w\])]):(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_END: Final = re.compile(r"/\*|\*/")


class Place(Struct, frozen=True):
    """`:name` at `start` of the text."""

    name: str
    start: int

    @property
    def end(self) -> int:
        return self.start + 1 + len(self.name)


def names(query: str, *, mysql: bool = False) -> list[str]:
    """Return each parameter once, in the order of the text."""
    return list(dict.fromkeys(place.name for place in (_places_of_mysql if mysql else _places)(query)))


def questioned(query: str) -> tuple[str, list[str]]:
    """Return a query of MySQL with `?` for each parameter, and their names in the order of the text."""
    parts: list[str] = []
    order: list[str] = []
    at = 0
    for place in _places_of_mysql(query):
        parts += [query[at : place.start], "?"]
        order.append(place.name)
        at = place.end
    return "".join([*parts, query[at:]]), order


class Numbered(Struct, frozen=True):
    """A query with `$1` for its first name, `$2` for the second. `original` maps a position back."""

    text: str
    names: list[str]
    original: Callable[[int], int]


def numbered(query: str) -> Numbered:
    found = list(_places(query))
    order = list(dict.fromkeys(place.name for place in found))
    numbers = {name: f"${number}" for number, name in enumerate(order, 1)}
    parts: list[str] = []
    shifts: list[tuple[int, int]] = []  # from this position on, this much further in the original
    at = length = 0
    for place in found:
        parts += [query[at : place.start], numbers[place.name]]
        length += place.start - at + len(numbers[place.name])
        at = place.end
        shifts.append((length, at - length))

    def original(position: int) -> int:
        shift = 0
        for start, by in shifts:
            if position < start:
                break
            shift = by
        return position + shift

    return Numbered("".join([*parts, query[at:]]), order, original)


def where(query: str, position: int) -> str:
    """Return `line 2, column 8` for a character counted from 0."""
    line = query.count("\n", 0, position) + 1
    return f"line {line}, column {position - (query.rfind(chr(10), 0, position) + 1) + 1}"


def _places(query: str) -> Iterator[Place]:
    at = 0
    while (found := _TOKEN.search(query, at)) is not None:
        at = found.end()
        if found["name"] is not None:
            yield Place(found["name"], found.start())
        elif found["comment"] is not None:
            at = _behind_comment(query, at)
        elif found["tag"] is not None:
            end = query.find(found[0], at)
            at = len(query) if end < 0 else end + len(found[0])


def _places_of_mysql(query: str) -> Iterator[Place]:
    for found in _TOKEN_OF_MYSQL.finditer(query):
        if found["name"] is not None:
            yield Place(found["name"], found.start())


def _behind_comment(query: str, at: int) -> int:
    """Return the position after a comment. Comments of PostgreSQL nest."""
    depth = 1
    while depth:
        found = _COMMENT_END.search(query, at)
        if found is None:
            return len(query)
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return at

"""SQL of other formats -> one statement with parameters.

Their programs write values into the text of a query; here each becomes a parameter. A text in quotes with a value in
it becomes one parameter as a whole. Where a database takes no parameter, as for the name of a table, the value stays in
the text, which is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

ROWS_MAX: Final = 10_000  # of a block; the others return all rows
_HOW: Final = "Write this part of the query yourself. A database takes parameters for values only."
_TOKENS: Final = r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z)|%s)
    | (?:\b(?P<type>date|time|timestamp|timestamptz|interval)\s*)?(?P<text>%s)
    | (?P<name>%s)
    | (?P<bare>\x00+)
"""
_FLAGS: Final = re.VERBOSE | re.DOTALL | re.IGNORECASE
_POSTGRES: Final = re.compile(
    _TOKENS % (r"\$(?P<tag>[a-z_]*)\$.*?\$(?P=tag)\$", r"\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'", r'"(?:[^"]|"")*"'),
    _FLAGS,
)
_MYSQL: Final = re.compile(
    _TOKENS % (r"\#[^\n]*", r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", "`[^`]*`"), _FLAGS
)
# A name or a part of one stands here, or a list of columns; after `WHERE`, alone, a condition as a text.
_BEFORE: Final = re.compile(
    r"(?:\b(?:(?<!distinct )from|join|into|update|table|only|by|as|schema|database|view|index|exists)\s+|[.\w])\Z",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"\b(?:where|having|set|values)\s+\Z", re.IGNORECASE)
_ALONE: Final = re.compile(r"\s*(?:;|\)|\Z|(?:and|or|where|group|order|limit|returning)\b)", re.IGNORECASE)
_LIST: Final = re.compile(r"\bin\s*\(\s*\x00+\s*\)", re.IGNORECASE)
_READS: Final = re.compile(r"\s*(?:select|with|show|describe|desc|explain|values|table)\b", re.IGNORECASE)
_CHANGES: Final = re.compile(r"\b(?:insert|update|delete|merge|into)\b", re.IGNORECASE)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def reads(query: str) -> bool:
    """Return whether a statement changes nothing, as far as its words show."""
    return _READS.match(query) is not None and _CHANGES.search(query) is None


class Span(NamedTuple):
    """A value in the text of a query; `name` is for its parameter."""

    start: int
    end: int
    name: str


class Statement:
    """A statement while it is written. `parameters` are its values by name."""

    def __init__(self, *, mysql: bool, lose: Callable[[str, str], None]) -> None:
        self.mysql = mysql
        self.parameters: dict[str, Any] = {}
        self._lose = lose

    def name(self, *parts: object) -> str:
        """Return a name of an export as SQL has it; no character of it ends the name."""
        mark = "`" if self.mysql else '"'
        return ".".join(mark + str(part).replace(mark, mark + mark) + mark for part in parts)

    def put(self, value: Any, name: str) -> str:
        """Add a parameter. Returns its place in the text."""
        base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        base = base if base[:1].isalpha() else f"p_{base}".rstrip("_")
        free, n = base, 1
        while free in self.parameters and self.parameters[free] != value:
            n += 1
            free = f"{base}_{n}"
        self.parameters[free] = value
        return f":{free}"

    def insert(self, table: str, row: Mapping[str, Any], unique: Sequence[str] | None = None) -> str:
        """`unique`: the columns by which a row that is there is changed instead."""
        given = {column: self.put(value, column) for column, value in row.items()}
        columns = ", ".join(map(self.name, given))
        text = f"INSERT INTO {table} ({columns}) VALUES ({', '.join(given.values())})"  # noqa: S608 - names are quoted
        if unique is not None:
            changed = ", ".join(f"{self.name(one)} = {at}" for one, at in given.items() if one not in unique)
            if self.mysql:
                text += f" ON DUPLICATE KEY UPDATE {changed}" if changed else ""
            else:
                target = ", ".join(map(self.name, unique))
                text += f" ON CONFLICT ({target}) DO " + (f"UPDATE SET {changed}" if changed else "NOTHING")
        return self._returning(text)

    def update(self, table: str, row: Mapping[str, Any], where: str) -> str:
        changed = ", ".join(f"{self.name(column)} = {self.put(value, column)}" for column, value in row.items())
        return self._returning(f"UPDATE {table} SET {changed}{where}")  # noqa: S608 - as above

    def delete(self, table: str, where: str, *, returning: bool = True) -> str:
        text = f"DELETE FROM {table}{where}"  # noqa: S608 - as above
        return self._returning(text) if returning else text

    def where(self, tests: Iterable[tuple[str, str, Any]], joined: str = "AND") -> str:
        """Return the clause for (column, operator, value). ` IS NULL` and its like take no value."""
        made = [
            f"{self.name(column)} {operator}" + ("" if "NULL" in operator else f" {self.put(value, column)}")
            for column, operator, value in tests
        ]
        return f" WHERE {f' {joined} '.join(made)}" if made else ""

    def text(self, query: str, spans: Sequence[Span], value: Callable[[str, str], Any]) -> str:
        """Return a query, with a parameter for each span where one can be. `value` makes it of a text with spans in it,
        and a name."""
        masked = list(query)
        for span in spans:
            masked[span.start : span.end] = "\0" * (span.end - span.start)
        plain = "".join(masked)
        if _LIST.search(plain):
            self._lose("A list in IN (…) is one value of its query.", "Use = ANY(:name), or a parameter for each.")
        parts: list[str] = []
        at = 0
        for token in (_MYSQL if self.mysql else _POSTGRES).finditer(plain):
            names = [span.name for span in spans if token.start() <= span.start < token.end()]
            if not names:
                continue
            if token["comment"]:
                made = token["comment"].replace("\0", "")
            elif token["text"]:
                literal = query[token.start("text") : token.end("text")]
                made = self._cast(self.put(value(self._content(literal), names[-1]), names[-1]), token["type"])
            elif token["bare"] and not _is_part(plain[: token.start()], plain[token.end() :]):
                made = self.put(value(query[token.start() : token.end()], names[-1]), names[-1])
            else:
                kept = query[token.start() : token.end()]
                self._lose(f"{kept[:100]} is a part of its query, and no value in it.", _HOW)
                continue
            parts += [query[at : token.start()], made]
            at = token.end()
        return "".join([*parts, query[at:]])

    def _content(self, literal: str) -> str:
        mark = literal[-1]
        text = literal[literal.index(mark) + 1 : -1].replace(mark * 2, mark)
        if self.mysql or not literal.startswith(mark):
            text = re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), text, flags=re.DOTALL)
        return text

    def _cast(self, place: str, type: str | None) -> str:
        """Return a parameter in the place of `date '...'`, whose text is none."""
        if type is None:
            return place
        if self.mysql:
            type = type.lower().replace("timestamp", "datetime")
        return f"INTERVAL {place}" if self.mysql and type == "interval" else f"CAST({place} AS {type})"

    def _returning(self, text: str) -> str:
        return text if self.mysql else f"{text} RETURNING *"


def _is_part(before: str, after: str) -> bool:
    """Return whether a value there is more than a value: a name, a clause, or the whole query."""
    if not before.strip() or _BEFORE.search(before) or re.match(r"[.\w]", after):
        return True
    return _CLAUSE.search(before) is not None and _ALONE.match(after) is not None

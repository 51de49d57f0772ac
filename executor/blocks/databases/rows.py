"""A query and its answer: rows as JSON, bounded in number and in bytes."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from executor.blocks.runners.call import Failure
from executor.errors import BlockError

ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 4 * 1024 * 1024  # for all rows as JSON
COLUMNS_MAX: Final = 2_000
WHOLE_MAX: Final = 2**53 - 1  # larger ones lose digits in JavaScript, and in most readers of JSON
DIGITS_MAX: Final = 15  # in a decimal number that a double holds exactly


class Query(Struct, frozen=True):
    """`parameters`: JSON values by name, bound and never part of the text. `timeout_s` is for all of it. `path`: of the
    SQLite file, for the child process."""

    text: str
    parameters: Mapping[str, Any] = {}
    read_only: bool = True
    max_rows: int = 1_000
    timeout_s: float = 30.0
    path: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Login:
    """The account that signs in. `user` is None if the address has it."""

    user: str | None
    password: str


class Answer(Struct):
    """The rows of a query. `columns` are unique: a number is added to a repeated name. `cut` is the bound that left
    rows out. `affected` counts the rows that were changed, or is None if the query cannot change any."""

    columns: list[str]
    rows: list[dict[str, Any]]
    cut: Literal["rows", "bytes"] | None = None
    affected: int | None = None


class Reply(Struct, frozen=True, omit_defaults=True):
    """A line of the child process. Without `answer` and `failure` it is ready, or `committing` and not done."""

    answer: Answer | None = None
    failure: Failure | None = None
    committing: bool = False


class Gathered:
    """Takes rows until there is no more room."""

    def __init__(self, max_rows: int) -> None:
        self.answer = Answer([], [])
        self._max_rows = max_rows
        self._left = BYTES_MAX

    def named(self, columns: Sequence[str]) -> None:
        if len(columns) > COLUMNS_MAX:
            message = f"the query returns {len(columns)} columns, more than {COLUMNS_MAX}"
            raise BlockError(message, code="sql_too_large", retryable=False)
        seen: dict[str, int] = {}
        taken = set(columns)
        for name in columns:
            seen[name] = seen.get(name, 0) + 1
            unique, number = name, seen[name]
            while number > 1 and unique in taken:
                unique = f"{name}_{number}"
                number += 1
            taken.add(unique)
            self.answer.columns.append(unique)

    def add(self, values: Sequence[Any]) -> bool:
        """Add a row. Returns False if there is no room for this row, nor for later ones."""
        if len(self.answer.rows) >= self._max_rows:
            self.answer.cut = "rows"
            return False
        row = {name: plain(value) for name, value in zip(self.answer.columns, values, strict=True)}
        self._left -= len(orjson.dumps(row)) + 1
        if self._left < 0:
            self.answer.cut = "bytes"
            return False
        self.answer.rows.append(row)
        return True


def plain(value: Any) -> Any:
    """Return a value as JSON. Numbers that JSON would round are texts; bytes are base64; times are ISO 8601."""
    match value:
        case None | bool():
            return value
        case str():
            return value.encode("utf-8", "replace").decode() if not value.isascii() else value
        case int():
            return value if abs(value) <= WHOLE_MAX else str(value)
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return _decimal(value)
        case datetime() | date() | time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {str(name): plain(item) for name, item in value.items()}
        case _:
            return str(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return "NaN" if value.is_nan() else _not_finite(float(value))
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent == 0:
        whole = int(value)
        return whole if abs(whole) <= WHOLE_MAX else str(value)
    if len(digits) <= DIGITS_MAX and -300 < exponent < 0:
        return float(value)
    return str(value)

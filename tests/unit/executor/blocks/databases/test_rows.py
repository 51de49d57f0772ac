"""What values of databases are as JSON, and what bounds rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from executor.blocks.databases.rows import BYTES_MAX, Gathered, plain
from executor.errors import BlockError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (2**53 - 1, 2**53 - 1),
        (2**53, "9007199254740992"),
        (-(2**63), "-9223372036854775808"),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("12.30"), 12.3),
        (Decimal("1"), 1),
        (Decimal("1E+400"), "1E+400"),
        (Decimal("123456789012345678.9"), "123456789012345678.9"),
        (Decimal("Infinity"), "Infinity"),
        (Decimal("NaN"), "NaN"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00+00:00"),
        (time(1, 2), "01:02:00"),
        (b"\x00\xff", "AP8="),
        ([1, [Decimal("0.5")]], [1, [0.5]]),
        ({"a": b"\x00"}, {"a": "AA=="}),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("\ud800", "?"),
    ],
)
def test_plain(value: Any, shown: Any) -> None:
    assert plain(value) == shown


def test_names_that_repeat_get_numbers() -> None:
    gathered = Gathered(10)
    gathered.named(["id", "id", "id_2", "id"])
    assert gathered.answer.columns == ["id", "id_3", "id_2", "id_4"]
    assert gathered.add([1, 2, 3, 4])
    assert sorted(gathered.answer.rows[0].values()) == [1, 2, 3, 4]


def test_too_many_columns() -> None:
    with pytest.raises(BlockError, match="2001 columns"):
        Gathered(10).named([str(n) for n in range(2001)])


def test_rows_are_cut_by_number_and_by_bytes() -> None:
    gathered = Gathered(2)
    gathered.named(["n"])
    assert [gathered.add([n]) for n in range(3)] == [True, True, False]
    assert gathered.answer.cut == "rows"
    gathered = Gathered(10)
    gathered.named(["n"])
    half = "x" * (BYTES_MAX // 2 - 100)
    assert [gathered.add([half]) for _ in range(3)] == [True, True, False]
    assert (gathered.answer.cut, len(gathered.answer.rows)) == ("bytes", 2)

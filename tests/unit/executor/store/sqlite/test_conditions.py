"""Pieces of statements: conditions with a value, lists as one parameter."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from executor.store.sqlite.conditions import any_of, any_row_of, as_list, those_of


def test_conditions_without_a_value_are_left_out() -> None:
    assert those_of((" AND a = :a", "x"), (" AND b = :b", None), (" AND c = :c", "")) == " AND a = :a AND c = :c"
    assert those_of() == ""


def test_a_list_is_one_parameter() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        named = f"SELECT 'b' IN {any_of(':names')}, 'd' IN {any_of(':names')}, 2 IN {any_of(':numbers')}"
        given = {"names": as_list(["a", "b", '"'])} | {"numbers": as_list([1, 2])}
        assert db.execute(named, given).fetchone() == (1, 0, 1)
        rows = f"SELECT ('a', 1) IN {any_row_of(':rows', 2)}, ('a', 2) IN {any_row_of(':rows', 2)}"
        assert db.execute(rows, {"rows": as_list([("a", 1), ("b", 2)])}).fetchone() == (1, 0)
        assert db.execute(named, given | {"names": "[]"}).fetchone() == (0, 0, 1)

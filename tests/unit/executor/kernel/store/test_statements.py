"""Pieces of statements: conditions with a value, lists as one parameter."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import executor.kernel.store as package
from executor.kernel.store.sqlite.dialect import TEXTS
from executor.kernel.store.statements import Texts, as_list, those_of

SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|WHERE|VALUES|AND|FROM|INDEXED|json_each|ORDER BY|LIMIT)\b")


def test_conditions_without_a_value_are_left_out() -> None:
    assert those_of((" AND a = :a", "x"), (" AND b = :b", None), (" AND c = :c", "")) == " AND a = :a AND c = :c"
    assert those_of() == ""


def test_a_list_is_one_parameter() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        named = TEXTS["SELECT 'b' IN $texts(:names), 'd' IN $texts(:names), 2 IN $numbers(:numbers)"]
        given = {"names": as_list(["a", "b", '"'])} | {"numbers": as_list([1, 2])}
        assert db.execute(named, given).fetchone() == (1, 0, 1)
        rows = TEXTS["SELECT ('a', 1) IN $rows(:rows, tn), ('a', 2) IN $rows(:rows, tn)"]
        assert db.execute(rows, {"rows": as_list([("a", 1), ("b", 2)])}).fetchone() == (1, 0)
        assert db.execute(named, given | {"names": "[]"}).fetchone() == (0, 0, 1)


def test_a_text_is_made_once_with_its_pieces() -> None:
    texts = Texts("sqlite")
    assert texts["SELECT 1"] == "SELECT 1"
    assert texts["$has(b.head, :c) AND a = $lease_now(:now)$keep_there"] == "instr(b.head, :c) AND a = :now"
    assert texts["SELECT 1"] is texts["SELECT 1"] and len(texts) == 2


def test_an_unknown_piece_is_a_bug() -> None:
    with pytest.raises(KeyError, match="nothing"):
        TEXTS["SELECT $nothing"]


# What SQLite and PostgreSQL do not have in common, or mean differently: max(NULL, 1) is NULL in one of them.
DIALECT = {
    "json_each": r"json_each",
    "an index by name": r"INDEXED BY",
    "rowid": r"\browid\b",
    "iif": r"\biif\(",
    "INSERT OR": r"INSERT OR ",
    "min or max of two values": r"\b(?:min|max)\((?:[^(),]|\((?:[^()]|\([^()]*\))*\))*,",
    "a parameter without a name": r"\?",
    "a table behind IN": r"\bIN [a-z]",
    "CROSS JOIN with a condition": r"CROSS JOIN [^;]*? ON ",
    "instr": r"\binstr\(",
    "json_group_array": r"json_group_array",
}
# By place, and why.
ALLOWED: dict[tuple[str, str], str] = {
    ("statements", "json_each"): "SQLite's pieces",
    ("statements", "an index by name"): "the same",
    ("statements", "CROSS JOIN with a condition"): "the same",
    ("dialect", "CROSS JOIN with a condition"): "the append of events, which is SQLite's own",
    ("dialect", "INSERT OR"): "its fence",
    ("dialect", "a parameter without a name"): "thousands of rows a second, by position: see there",
    ("writer", "a parameter without a name"): "the writer's own row",
    ("writer", "rowid"): "the writers that registered last",
}


def test_statements_keep_to_what_both_databases_have() -> None:
    found: dict[tuple[str, str], str] = {}
    for path in Path(package.__path__[0]).rglob("*.py"):
        if "postgres" in path.parts:  # what only that database is asked
            continue
        for text in _texts(path):
            found |= {(path.stem, what): text for what, form in DIALECT.items() if re.search(form, text)}
    unexpected = {place: text for place, text in found.items() if place not in ALLOWED}
    assert not unexpected, unexpected


def _texts(path: Path) -> Iterator[str]:
    """Every text of a module that is SQL, or a piece of it; no docstrings."""
    for node in ast.walk(ast.parse(path.read_text())):
        values = node.args[:1] if isinstance(node, ast.Call) else [getattr(node, "value", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return | ast.Call):
            for part in (part for value in values if value is not None for part in ast.walk(value)):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and SQL.search(part.value):
                    yield part.value

"""Where the parameters of a query are, and how positions of an error lead back to what the author wrote."""

from __future__ import annotations

import pytest

from executor.blocks.databases.statement import names, numbered, questioned, where


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT 1", []),
        ("SELECT :a, :b, :a", ["a", "b"]),
        ("SELECT ':a', \":b\", `:c`", []),
        ("SELECT 'it''s :a' || :b", ["b"]),
        ("SELECT E'\\':a' || :b", ["b"]),
        ("SELECT 1 -- :a\n, :b", ["b"]),
        ("SELECT /* :a /* :b */ :c */ :d", ["d"]),
        ("SELECT $$:a$$, $x$ :b $y$ :c $x$, :d", ["d"]),
        ("SELECT :a::int, b::text", ["a"]),
        ("SELECT items[1:2], items[low:high], (f(x)):y", []),
        ("SELECT ':never ends", []),
        ("SELECT /* :never ends", []),
        ("SELECT $$ :never ends", []),
        ("WHERE a=:a AND b IN(:b,:c)", ["a", "b", "c"]),
    ],
)
def test_names(query: str, found: list[str]) -> None:
    assert names(query) == found


def test_numbers_for_postgresql() -> None:
    query = "SELECT :from_day, ':x', :b::int, :from_day"
    made = numbered(query)
    assert made.text == "SELECT $1, ':x', $2::int, $1"
    assert made.names == ["from_day", "b"]


def test_question_marks_for_mysql() -> None:
    query = """SELECT :a, 'it\\'s :x', "say \\":x", `:x` # :x
      -- :x
      , /* /* :x */ :b, :a, 1--:c, ':never ends"""
    assert names(query, mysql=True) == ["a", "b", "c"]
    text, order = questioned(query)
    assert order == ["a", "b", "a", "c"]
    assert text == query.replace(":a", "?").replace(":b", "?").replace(":c", "?")


def test_positions_lead_back() -> None:
    query = "SELECT :a,\n :long_name,\n oops FROM t WHERE x = :a AND bad"
    made = numbered(query)
    for word in ("oops", "bad", "SELECT", "FROM"):
        assert made.original(made.text.index(word)) == query.index(word)
    assert where(query, query.index("oops")) == "line 3, column 2"
    assert where(query, 0) == "line 1, column 1"


def test_a_long_query_is_read_once() -> None:
    assert names("/*" * 100_000) == []
    assert names("'" * 100_001) == []
    assert len(numbered("SELECT " + ", ".join(f":p{n}" for n in range(5_000))).names) == 5_000

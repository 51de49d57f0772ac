"""Which items of a group are statements with arrays, without a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

pytest.importorskip("psycopg")

from executor.kernel.store.postgres.batch import array_of, in_numbers
from executor.kernel.store.postgres.hot.begins import Begins, begin_of
from executor.kernel.store.postgres.hot.group import HotGroup
from executor.kernel.store.postgres.hot.kind import Columns
from executor.kernel.store.run_rows import Append
from executor.kernel.store.topics.inbox import cancel_run, post_message
from executor.kernel.store.topics.journal import append
from executor.kernel.store.topics.leases import begin_run, release
from executor.kernel.store.topics.runs import create_run
from executor.kernel.store.writer import Item
from tests.support.rows import LEASE_MS, T0, new_run, record, wait

ENDED: dict[str, Any] = {"status": "succeeded", "finished": True}


def _item(write: Callable[..., Any], *args: Any, alone: bool = False) -> Item:
    return Item(cast(Any, None), write, args, alone=alone)


def _append(run: str, seq: int = 1, **fields: Any) -> Item:
    return _item(append, Append(run, 1, seq, (record(),), T0, **fields))


def _taken(*items: Item) -> list[int]:
    return sorted(HotGroup(items).taken)


def test_a_run_has_one_item_of_each_kind_in_the_order_of_the_kinds() -> None:
    post, park = _item(post_message, "a", b"m", T0), _item(release, "a", 1, 2, None, "waiting")
    assert _taken(_append("a"), _append("a", 2, **ENDED), post, post) == [0, 1, 2]
    assert _taken(park, post) == [0, 1]
    assert _taken(post, park) == [0]
    assert _taken(_append("a"), _append("b"), _append("a", 2), _append("b", 2, **ENDED)) == [0, 1, 3]


def test_what_comes_behind_one_that_is_left_is_left_too() -> None:
    assert _taken(_append("a", waits=(wait("a"),)), _append("a", 2), _append("b")) == [2]
    assert _taken(_append("a", 1), _append("a", 2), _append("a", 3, **ENDED)) == [0]
    assert _taken(_item(post_message, "a", b"m", T0, alone=True), _append("a"), _append("b")) == [2]


def test_what_writes_more_than_its_kind_is_left() -> None:
    assert _taken(_append("a", **ENDED, posts=(("b", b"m"),)), _append("b", root="b", **ENDED)) == []
    assert _taken(_append("a", status="waiting"), _item(append, Append("b", 1, 1, (), T0))) == []
    assert _taken(_item(cancel_run, "a", b"m", T0)) == []
    child = new_run("a", parent_run_id="b", parent_key="k")
    assert _taken(_item(create_run, child), _item(create_run, new_run("c", sources=("d",)))) == []
    begins = [Append("a", 1, 1, (record(),), T0, waits=(wait("a"),)), Append("a", 1, 2, (record(),), T0)]
    assert [_taken(_item(begin_run, new_run("a"), "w", LEASE_MS, first)) for first in begins] == [[], []]


def test_new_runs_are_in_the_order_of_their_keys() -> None:
    keys = {"a": "3", "b": "1", "c": None, "d": "2"}
    begins = {run: begin_of(new_run(run, idempotency_key=key)) for run, key in keys.items()}
    assert Begins({run: (n, cast(Any, begin)) for n, (run, begin) in enumerate(begins.items())}).runs == list("cbda")


def test_rows_are_an_array_for_each_column() -> None:
    columns = Columns("w", id="t", seq="n", data="b")
    assert columns.table == "unnest(%(w_id)s::text[], %(w_seq)s::bigint[], %(w_data)s::bytea[]) AS w (id, seq, data)"
    assert columns.values([("a", 1, b"x"), ("b", 2, None)]) == {
        "w_id": array_of("text", ["a", "b"]),
        "w_seq": array_of("bigint", [1, 2]),
        "w_data": array_of("bytea", [b"x", None]),
    }
    assert columns.values([]) == {f"w_{name}": array_of(type, []) for name, type in zip(*_COLUMNS, strict=True)}


_COLUMNS = ("id", "seq", "data"), ("text", "bigint", "bytea")


def test_statements_in_the_form_of_libpq() -> None:
    assert in_numbers("SELECT %(b)s::text, %(a)s::bytea, %(b)s, 7 %% 2") == (
        b"SELECT $1::text, $2::bytea, $1, 7 % 2", ("b", "a"),
    )  # fmt: skip

"""Values as rows that are stored, and values from these rows: nothing of what can be read later is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import GenericAlias
from typing import Any

import msgspec
import pytest

from compiler.keys import NodeKey, Path
from compiler.plan import Plan, Ref
from executor.kernel.core import events as e
from executor.kernel.values import fold as fold_module
from executor.kernel.values.fold import VALUE_ROWS, Fold, SavedValues, rows_of_fold
from executor.kernel.values.scope import Values

Nested = Callable[..., Plan]
ERROR = e.ErrorInfo("block_failed", "no")


def empty(plan: Plan) -> Fold:
    return Fold(plan, Values(plan, {}, {}))


def again(plan: Plan, fold: Fold) -> Fold:
    new = empty(plan)
    saved = SavedValues(new)
    for kind, rows in rows_of_fold(fold):
        data = msgspec.msgpack.encode(rows)
        saved.add(kind, msgspec.msgpack.decode(data, type=GenericAlias(list, (VALUE_ROWS[kind],))))
    assert list(rows_of_fold(new)) == list(rows_of_fold(fold))
    return new


def key(plan: Plan, id: str, path: Path = ()) -> NodeKey:
    number = plan.node_index(id)
    assert number is not None
    return path, number


def at(region: int, index: int) -> tuple[int, int]:
    return region, index


def read(plan: Plan, fold: Fold, id: str, path: Path = (), **more: Any) -> Any:
    return fold.values.lookup(Ref(id, "block", key(plan, id)[1], **more), path)


def size(plan: Plan, fold: Fold, id: str, count: int, path: Path = (), items: bytes | None = None) -> None:
    fold.apply(e.RegionSized(key(plan, f"{id}:start", path), 1, count), items)


def done(plan: Plan, fold: Fold, id: str, value: Any, path: Path = ()) -> None:
    fold.apply(e.NodeSucceeded(key(plan, id, path), 1), json.dumps(value).encode())


def test_outputs_variables_and_what_ran_last(nested: Nested) -> None:
    plan = nested()
    fold = empty(plan)
    done(plan, fold, "z", {"a": [1, None]})
    fold.apply(e.VariablesPatched(key(plan, "s"), [["set", "$.v", {"deep": [2**63, 1.5, "ü"]}]]))
    new = again(plan, fold)
    assert new.values.variables == {"v": {"deep": [2**63, 1.5, "ü"]}}
    assert (new.bytes, new.run_output()) == (fold.bytes, fold.run_output())
    assert read(plan, new, "z") == {"a": [1, None]}


def test_a_loop_in_its_second_iteration(nested: Nested) -> None:
    plan = nested("loop")
    fold = empty(plan)
    size(plan, fold, "c1", 3, items=b'["x","y","z"]')
    done(plan, fold, "a1", 0, (at(1, 0),))
    fold.apply(e.ScopesOpened(key(plan, "c1:start"), 1, 1))
    done(plan, fold, "a1", 1, (at(1, 1),))
    fold.values.break_at((at(1, 1),))
    new = again(plan, fold)
    path = (at(1, 1),)
    assert read(plan, new, "a1", path) == 1
    assert read(plan, new, "a1", path, region=1, mode="previous") == 0
    assert read(plan, new, "a1") == 1  # from outside: the newest
    fields = {name: new.values.lookup(Ref(f"loop.{name}", "scope", region=1, path=(name,)), path)
              for name in ("item", "items", "results", "index", "break")}  # fmt: skip
    assert fields == {"item": "y", "items": ["x", "y", "z"], "results": [[0]], "index": 1, "break": True}
    assert new.values.broke(path) and not new.values.broke((at(1, 0),))
    for one in (fold, new):
        made = one.apply(e.RegionExited(key(plan, "c1:end"), 2))
        assert made is not None and json.loads(made) == {"results": [[0], [1]], "last": {"A1": 1}}
    after = again(plan, new)
    assert read(plan, after, "c1:end")["results"] == [[0], [1]]
    assert read(plan, after, "a1") == 1


def test_branches_that_failed_or_are_still_needed(nested: Nested) -> None:
    plan = nested("loop", "parallel")
    previous = Ref("b2", "block", key(plan, "b2")[1], region=1, mode="previous")
    plan = nested("loop", "parallel", on_branch_error="collect", needs={"a2": (previous,)})
    fold = empty(plan)
    size(plan, fold, "c1", 2)
    outer = (at(1, 0),)
    size(plan, fold, "c2", 3, outer)
    done(plan, fold, "b2", "first", (*outer, at(2, 0)))
    failed = (*outer, at(2, 1))
    fold.apply(e.NodeFailed(key(plan, "b2", failed), 1, ERROR, caught=("branch", failed)))
    fold.values.scope_closed((*outer, at(2, 0)))
    inner = fold.values.root.containers[1].open[0].containers[2]
    assert fold.branch_errors and inner.retained and inner.results
    new = again(plan, fold)
    assert new.branch_errors == fold.branch_errors
    for one in (fold, new):
        made = one.apply(e.RegionExited(key(plan, "c2:end", outer), 3))
        assert made is not None
        [[first], error, third] = json.loads(made)["results"]
        assert (first, error["error"]["code"], third) == ("first", "block_failed", [])
        one.apply(e.ScopesOpened(key(plan, "c1:start"), 1, 1))
    again(plan, new)
    path = (at(1, 1), at(2, 0))
    for one in (fold, new):
        assert read(plan, one, "b2", path, region=1, mode="previous") == "first"


def test_a_container_passed_over_and_one_that_is_reused(nested: Nested) -> None:
    plan = nested("loop", "parallel")
    fold = empty(plan)
    fold.apply(e.NodeFailed(key(plan, "c1:start"), 1, ERROR, route="error"))
    assert read(plan, again(plan, fold), "c1:end") == {"error": {"code": "block_failed", "message": "no"}}
    fold = empty(plan)
    fold.apply(e.RegionExited(key(plan, "c1:end"), 0, reused=True), b'{"results":[[1]],"last":{"A1":1}}')
    (row,) = next(rows for kind, rows in rows_of_fold(fold) if kind == "cell" and rows)
    assert row[3] == len(b'{"results":[[1]]')  # what a container around it collects is its beginning
    assert again(plan, fold).values.root.cells[row[1]].brief == b'{"results":[[1]]}'


def test_rows_come_in_parts(nested: Nested, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they are, and however large: no part has much more than its bound, and the order does not matter."""
    monkeypatch.setattr(fold_module, "ROWS_MAX", 3)
    monkeypatch.setattr(fold_module, "BYTES_MAX", 100)
    plan = nested("parallel", "loop")
    fold = empty(plan)
    size(plan, fold, "c1", 20)
    for index in range(20):
        path = (at(1, index),)
        done(plan, fold, "a1", "x" * (90 if index % 3 else 1), path)
        size(plan, fold, "c2", 2, path)
        done(plan, fold, "b2", index, (*path, at(2, 0)))
    parts = list(rows_of_fold(fold))
    assert max(len(rows) for _, rows in parts) <= 3
    assert len(parts) > 50
    new = again(plan, fold)
    assert [read(plan, new, "b2", (at(1, n), at(2, 0))) for n in range(20)] == list(range(20))

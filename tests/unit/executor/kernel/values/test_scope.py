import gc
import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from compiler.keys import Path
from compiler.plan import Plan, Ref
from executor.errors import BlockError
from executor.kernel.values.payload import MISSING
from executor.kernel.values.scope import ScopeCells, Values

Nested = Callable[..., Plan]
ERROR = {"code": "block_failed", "message": "no"}


def dump(value: Any) -> bytes:
    return orjson.dumps(value)


class Run:
    """Values of one run, with nodes by id."""

    def __init__(self, plan: Plan, input: Any = None, env: dict[str, str] | None = None) -> None:
        self.plan = plan
        self.values = Values(plan, input, env or {})

    def n(self, id: str) -> int:
        index = self.plan.node_index(id)
        assert index is not None
        return index

    def done(self, id: str, output: Any, path: Path = ()) -> None:
        self.values.succeeded((path, self.n(id)), dump(output))

    def size(self, id: str, count: int, items: Any = None, path: Path = ()) -> None:
        self.values.sized((path, self.n(f"{id}:start")), count, None if items is None else dump(items))

    def exit(self, id: str, path: Path = ()) -> Any:
        return json.loads(self.values.exit((path, self.n(f"{id}:end"))))

    def block(self, id: str, path: Path = (), *fields: str | int, **more: Any) -> Any:
        return self.values.lookup(
            Ref(".".join([id, *map(str, fields)]), "block", self.n(id), path=fields, **more), path
        )

    def field(self, name: str, region: int, path: Path = (), *fields: str | int) -> Any:
        return self.values.lookup(Ref(f"loop.{name}", "scope", region=region, path=(name, *fields)), path)


def it(*indexes: int) -> Path:
    return tuple((region + 1, index) for region, index in enumerate(indexes))


# blocks


def test_an_output_and_its_fields(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.done("s", {"a": [{"b": 1}], "n": None})
    assert run.block("s") == {"a": [{"b": 1}], "n": None}
    assert run.block("s", (), "a", 0, "b") == 1
    assert run.block("s", (), "n") is None
    assert run.block("s", it(3), "a", 0) == {"b": 1}  # from inside a loop as well


def test_what_is_not_there_is_missing(nested: Nested) -> None:
    run = Run(nested("loop"))
    assert run.block("s") is MISSING
    assert run.block("s", (), "a", strict=True) is MISSING  # did not run: no error, whatever is asked for
    run.done("s", {"a": None, "text": "x"})
    for fields in (("nope",), ("a", "b"), ("text", "length"), ("a", 0)):
        assert run.block("s", (), *fields) is MISSING


def test_output_may_be_named(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.done("s", {"a": 1})
    assert run.block("s", (), "output", "a") == 1
    assert run.block("s", (), "output") == {"a": 1}
    run.done("s", {"output": {"a": 2}})
    assert run.block("s", (), "output", "a") == 2


def test_an_unknown_field_of_a_strict_reference_is_an_error(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.done("s", {"result": 1, "stdout": ""})
    with pytest.raises(BlockError) as caught:
        run.block("s", (), "nosuch", strict=True)
    assert (caught.value.code, caught.value.retryable) == ("reference_failed", False)
    assert caught.value.message == '"nosuch" doesn\'t exist on block "s". Available fields: result, stdout'
    assert run.block("s", (), "nosuch", strict=True, default="0") == 0
    run.values.passed(((), run.n("s")))
    assert run.block("s", (), "nosuch", strict=True) is MISSING  # nothing was put out: no field can be unknown


def test_defaults_stand_in_for_missing_and_null(nested: Nested) -> None:
    run = Run(nested("loop"))
    assert run.block("s", (), "a", default='{"x":1}') == {"x": 1}
    run.done("s", {"a": None, "zero": 0, "empty": ""})
    assert run.block("s", (), "a", default="5") == 5
    assert run.block("s", (), "zero", default="5") == 0
    assert run.block("s", (), "empty", default="5") == ""


def test_failed_and_passed(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.values.failed(((), run.n("s")), ERROR)
    assert run.block("s", (), "error", "message") == "no"
    run.values.passed(((), run.n("s")))
    assert run.block("s") is None


def test_a_container_that_fails_at_its_start_is_read_by_its_name(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.values.failed(((), run.n("c1:start")), ERROR)
    assert run.block("c1:end", (), "error", "code") == "block_failed"


# loops


def test_a_loop_collects_its_results_in_plan_order(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.size("c1", 2)
    for i in range(2):
        run.done("b1", f"b{i}", it(i))
        if i == 0:
            run.done("a1", f"a{i}", it(i))
        run.values.scope_closed(it(i))
    assert run.exit("c1") == {"results": [["a0", "b0"], ["b1"]], "last": {"B1": "b1"}}
    assert run.block("c1:end", (), "results", 1, 0) == "b1"
    with pytest.raises(BlockError, match=r'"index" doesn.t exist on block "c1:end"\. Available fields: results, last'):
        run.block("c1:end", (), "index", strict=True)


def test_an_iteration_reads_itself_and_the_one_before(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.size("c1", 3)
    seen = []
    for i in range(3):
        path = it(i)
        seen.append((run.block("b1", path, mode="previous", region=1), run.block("a1", path)))
        if i == 0:
            run.done("a1", "only once", path)
        assert run.block("a1", path) == ("only once" if i == 0 else MISSING)  # skipped later: never an older value
        run.done("b1", i, path)
        run.values.scope_closed(path)
    assert seen == [(MISSING, MISSING), (0, MISSING), (1, MISSING)]


def test_the_last_iteration_is_read_from_outside(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.size("c1", 1)
    last: dict[str, Any] = {"mode": "last"}
    assert run.block("a1", (), **last) is MISSING
    run.done("a1", {"ok": False}, it(0))
    assert run.block("a1", (), "ok", **last) is False  # what the loop's own test reads, before the scope is closed
    run.values.scope_closed(it(0))
    assert run.block("a1", (), "ok", **last) is False
    run.done("a1", {"ok": True}, it(1))
    run.values.scope_closed(it(1))
    run.exit("c1")
    assert run.block("a1", (), "ok", **last) is True


def test_last_through_two_loops(nested: Nested) -> None:
    run = Run(nested("loop", "loop"))
    run.size("c1", 2)
    for i in range(2):
        run.size("c2", 2, path=it(i))
        for j in range(2):
            run.done("a2", f"{i}{j}", it(i, j))
            run.values.scope_closed(it(i, j))
        run.exit("c2", it(i))
        assert run.block("a2", it(i), mode="last") == f"{i}1"
        run.values.scope_closed(it(i))
    run.exit("c1")
    assert run.block("a2", (), mode="last") == "11"


def test_loop_fields(nested: Nested) -> None:
    run = Run(nested("loop"))
    assert run.field("index", 1) == 0  # the start sentinel's own test, before iteration 0
    assert run.field("results", 1) == []
    assert run.field("item", 1) is MISSING
    run.size("c1", 2, [{"k": "p"}, {"k": "q"}])
    for i in range(2):
        path = it(i)
        assert run.field("index", 1, path) == run.field("iteration", 1, path) == i
        assert run.field("item", 1, path, "k") == "pq"[i]
        assert run.field("items", 1, path) == [{"k": "p"}, {"k": "q"}]
        assert run.field("items", 1, path, 1, "k") == "q"
        assert run.field("results", 1, path) == [[{"i": n}] for n in range(i)]
        assert run.field("break", 1, path) is False
        run.done("a1", {"i": i}, path)
        run.values.scope_closed(path)
        assert run.field("index", 1) == i + 1  # the end sentinel tests with the next index
        assert run.field("results", 1) == [[{"i": n}] for n in range(i + 1)]
    assert run.field("nope", 1) is MISSING
    assert run.values.size((), 1) == 2


@pytest.mark.parametrize("standing", ["outside", "at the next index"])
def test_a_loops_own_test_stands_before_the_next_iteration(nested: Nested, standing: str) -> None:
    """It is run when the iteration is over and the next one, or none, is to begin: the scope is not closed yet."""
    run = Run(nested("loop"))
    for i in range(3):
        path = it(i) if standing != "outside" else ()
        assert run.field("index", 1, path) == i
        assert run.field("results", 1, path) == [[n] for n in range(i)]
        assert run.block("a1", path, mode="previous", region=1) == (i - 1 if i else MISSING)
        if i == 0:
            run.size("c1", 1)
        else:
            run.values.scope_closed(it(i - 1))
        run.done("a1", i, it(i))
    run.values.scope_closed(it(2))
    assert run.exit("c1")["results"] == [[0], [1], [2]]


def test_closing_twice_is_closing_once(nested: Nested) -> None:
    for kind in ("loop", "parallel"):
        run = Run(nested(kind))
        run.size("c1", 2)
        for i in range(2):
            run.done("a1", i, it(i))
            run.values.scope_closed(it(i))
            run.values.scope_closed(it(i))
            run.values.scope_closed(it(0), ERROR)
        assert run.exit("c1")["results"] == [[0], [1]]


def test_an_end_that_was_reused_may_be_null(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.values.exited(((), run.n("c1:end")), b"null")
    assert run.block("c1:end", (), "results") is MISSING


def test_outer_and_inner_indexes(nested: Nested) -> None:
    run = Run(nested("loop", "parallel"))
    path = it(4, 7)
    run.size("c1", 5)
    run.size("c2", 8, list("abcdefgh"), path=it(4))
    assert (run.field("index", 1, path), run.field("index", 2, path), run.field("item", 2, path)) == (4, 7, "h")


def test_break_marks_the_innermost_loop(nested: Nested) -> None:
    run = Run(nested("loop", "parallel"))
    run.size("c1", 5)
    run.size("c2", 2, path=it(1))
    run.values.break_at(it(1, 0))
    assert run.values.broke(it(1)) and run.values.broke(it(1, 1))
    assert not run.values.broke(it(0)) and not run.values.broke(it(2)) and not run.values.broke(())
    assert run.field("break", 1, it(1)) is True
    run.values.scope_closed(it(1))
    assert run.values.broke(it(1))  # still known when the end sentinel asks
    run.values.break_at(())  # no loop: nothing to mark


def test_a_break_block_marks_by_itself(make_plan: Callable[..., Plan], make_node: Callable[..., Any]) -> None:
    from compiler.plan import Region

    root = Region(
        "",
        "root",
        -1,
        0,
        (make_node("l:start", sentinel="start", body=1), make_node("l:end", sentinel="end", body=1)),
        (0, 0),
        (0,),
        (1,),
    )
    body = Region("l", "loop", 0, 2, (make_node("b", type="break"),), (1,), (2,), (2,), start=0, end=1)
    values = Values(Plan("t", "l", (root, body)), None, {})
    values.sized(((), 0), 3, None)
    values.succeeded((((1, 0),), 2), b"{}")
    assert values.broke(((1, 0),)) and not values.broke(((1, 1),))


def test_no_iterations(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.size("c1", 0)
    assert run.exit("c1") == {"results": [], "last": {}}


def test_nested_containers_are_collected_by_results_only(nested: Nested) -> None:
    run = Run(nested("loop", "loop"))
    run.size("c1", 1)
    run.size("c2", 1, path=it(0))
    run.done("a2", 1, it(0, 0))
    run.values.scope_closed(it(0, 0))
    inner = run.exit("c2", it(0))
    run.values.scope_closed(it(0))
    assert inner == {"results": [[1]], "last": {"A2": 1}}
    assert run.exit("c1") == {"results": [[{"results": [[1]]}]], "last": {"C2": inner}}


def test_the_end_on_replay(nested: Nested) -> None:
    live, replayed = Run(nested("loop", "loop")), Run(nested("loop", "loop"))
    for run in (live, replayed):
        run.size("c1", 1)
        run.size("c2", 1, path=it(0))
        run.done("a2", {"x": 1}, it(0, 0))
        run.values.scope_closed(it(0, 0))
    output = live.values.exit((it(0), live.n("c2:end")))
    replayed.values.exited((it(0), replayed.n("c2:end")), output)
    for run in (live, replayed):
        run.values.scope_closed(it(0))
    assert live.exit("c1") == replayed.exit("c1")


# parallels


def test_branches_are_collected_in_branch_order(nested: Nested) -> None:
    run = Run(nested("parallel"))
    run.size("c1", 3, ["x", "y", "z"])
    for i in (2, 0, 1):
        run.done("a1", run.field("item", 1, it(i)), it(i))
    for i in (1, 2, 0):
        assert run.block("a1", it(i)) == "xyz"[i]
        run.values.scope_closed(it(i))
        assert run.block("a1", it(i)) is MISSING  # no block can read a branch that is over
    assert run.exit("c1") == {"results": [["x"], ["y"], ["z"]]}


@pytest.mark.parametrize(("mode", "result"), [("continue", None), ("collect", {"error": ERROR})])
def test_a_branch_that_failed(nested: Nested, mode: str, result: Any) -> None:
    run = Run(nested("parallel", on_branch_error=mode))
    run.size("c1", 2)
    run.done("a1", "ok", it(1))
    run.values.scope_closed(it(1))
    run.values.scope_closed(it(0), ERROR)
    assert run.exit("c1") == {"results": [result, ["ok"]]}


def test_results_are_values_where_the_body_has_one_end(nested: Nested) -> None:
    plan = nested("parallel", on_branch_error="collect")
    run = Run(replace(plan, regions=(plan.regions[0], replace(plan.regions[1], single=True))))
    run.size("c1", 4)
    run.done("a1", "one", it(0))
    run.values.scope_closed(it(0))
    run.values.scope_closed(it(1), ERROR)
    run.values.scope_closed(it(2))
    run.done("a1", "two", it(3))
    run.done("b1", "ends", it(3))
    run.values.scope_closed(it(3))
    assert run.exit("c1") == {"results": ["one", {"error": ERROR}, None, ["two", "ends"]]}


def test_siblings_do_not_see_each_other(nested: Nested) -> None:
    run = Run(nested("parallel", "loop"))
    run.size("c1", 2)
    for branch in (0, 1):
        run.size("c2", 2, path=it(branch))
    run.done("a2", "0/0", it(0, 0))
    run.values.scope_closed(it(0, 0))
    assert run.block("a2", it(0, 1), mode="previous", region=2) == "0/0"
    assert run.block("a2", it(1, 1), mode="previous", region=2) is MISSING
    assert run.field("index", 2, it(0)) == 1 and run.field("index", 2, it(1)) == 0


def test_a_branch_of_the_previous_iteration(nested: Nested) -> None:
    feedback = Ref("b2", "block", 0, region=1, mode="previous")
    plan = nested("loop", "parallel")
    b2 = plan.node_index("b2")
    assert b2 is not None
    feedback = Ref("b2", "block", b2, region=1, mode="previous")
    run = Run(nested("loop", "parallel", needs={"a2": (feedback,)}))
    run.size("c1", 2)
    for i in range(2):
        run.size("c2", 2, path=it(i))
        for branch in range(2):
            before = run.values.lookup(feedback, it(i, branch))
            assert before == (MISSING if i == 0 else f"{i - 1}[{branch}]")
            run.done("b2", f"{i}[{branch}]", it(i, branch))
            run.values.scope_closed(it(i, branch))
        run.exit("c2", it(i))
        run.values.scope_closed(it(i))


# variables, input, environment, run output


def test_variables(make_plan: Callable[..., Plan], make_node: Callable[..., Any]) -> None:
    plan = make_plan(make_node("s"), variables={"Feed Back": {"a": [1]}})
    values = Values(plan, None, {})
    ref = Ref("workflow.feedback.a", "variable", path=("feedback", "a"))
    given = values.lookup(ref, ())
    assert given == [1]
    given.append("changed by the reader")
    values.patch([["append", '$["Feed Back"].a', 2], ["set", "$.late", True]])
    assert values.lookup(ref, ()) == [1, 2]
    assert values.lookup(Ref("variable.late", "variable", path=("late",)), ()) is True
    assert values.lookup(Ref("variable.never", "variable", path=("never",)), ()) is MISSING
    assert plan.variables == {"Feed Back": {"a": [1]}}


def test_input_and_environment(nested: Nested) -> None:
    run = Run(nested("loop"), {"user": {"name": "Ann"}}, {"KEY": "s3cret"})
    assert run.values.lookup(Ref("input.user.name", "input", path=("user", "name")), it(2)) == "Ann"
    assert run.values.lookup(Ref("input", "input"), ()) == {"user": {"name": "Ann"}}
    assert run.values.lookup(Ref("input.x", "input", path=("x",)), ()) is MISSING
    assert run.values.lookup(Ref("${KEY}", "env", path=("KEY",)), ()) == "s3cret"
    assert run.values.lookup(Ref("${NOPE}", "env", path=("NOPE",)), ()) is MISSING


def test_run_output(make_plan: Callable[..., Plan], make_node: Callable[..., Any]) -> None:
    plan = make_plan(
        make_node("s"), make_node("a", name="Same"), make_node("b", name="Same"), make_node("c"), ends=(1, 2, 3)
    )
    values = Values(plan, None, {})
    assert values.run_output(()) == {}
    values.succeeded(((), 1), b'{"x":1}')
    assert values.run_output({0, 1}) == {"x": 1}
    values.succeeded(((), 2), b"2")
    values.passed(((), 3))
    assert values.run_output({0, 1, 2}) == {"Same": {"x": 1}, "b": 2}
    assert values.run_output({1, 2, 3}) == {"Same": {"x": 1}, "b": 2, "C": None}


# bounds


def test_ten_thousand_iterations_hold_two_scopes(nested: Nested) -> None:
    of_others = _scopes()
    run = Run(nested("loop", "loop"))
    run.size("c1", 10_000, list(range(10_000)))
    a1, b1 = run.n("a1"), run.n("b1")
    item = Ref("loop.item", "scope", region=1, path=("item",))
    results = Ref("loop.results", "scope", region=1, path=("results", 0, 0))
    previous = Ref("b1", "block", b1, region=1, mode="previous")
    for i in range(10_000):
        path = it(i)
        run.values.succeeded((path, a1), dump(run.values.lookup(item, path)))
        assert run.values.lookup(previous, path) == (i - 1 if i else MISSING)
        run.values.succeeded((path, b1), dump(i))
        run.values.scope_closed(path)
        run.values.lookup(results, ())
    gc.collect()
    assert 0 < len(_scopes().keys() - of_others.keys()) < 20
    output = run.exit("c1")
    assert len(output["results"]) == 10_000 and output["results"][9_999] == [9_999, 9_999]


def _scopes() -> dict[int, ScopeCells]:
    """Held: no id of one is used again."""
    return {id(each): each for each in gc.get_objects() if isinstance(each, ScopeCells)}

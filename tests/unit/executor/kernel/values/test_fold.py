"""Events and their outputs, folded into the values of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compiler.keys import NodeKey, Path
from compiler.plan import Plan, Ref
from executor.errors import BlockError
from executor.kernel.core import events as e
from executor.kernel.values.fold import Fold
from executor.kernel.values.payload import MISSING
from executor.kernel.values.scope import Values

Nested = Callable[..., Plan]
ERROR = e.ErrorInfo("block_failed", "no")


class Run:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.fold = Fold(plan, Values(plan, {}, {}))

    def key(self, id: str, path: Path = ()) -> NodeKey:
        number = self.plan.node_index(id)
        assert number is not None
        return path, number

    def done(self, id: str, output: bytes, path: Path = ()) -> None:
        self.fold.apply(e.NodeSucceeded(self.key(id, path), 1), output)

    def failed(self, id: str, path: Path = (), **more: Any) -> None:
        self.fold.apply(e.NodeFailed(self.key(id, path), 1, ERROR, **more))

    def exit(self, id: str, count: int, output: bytes | None = None, path: Path = ()) -> Any:
        made = self.fold.apply(e.RegionExited(self.key(f"{id}:end", path), count), output)
        assert made is not None
        return json.loads(made)

    def read(self, id: str, path: Path = ()) -> Any:
        return self.fold.values.lookup(Ref(id, "block", self.key(id)[1]), path)


def it(*indexes: int) -> Path:
    return tuple((region + 1, index) for region, index in enumerate(indexes))


def test_a_success_has_an_output_and_a_start_has_none(nested: Nested) -> None:
    run = Run(nested())
    assert run.fold.apply(e.NodeStarted(run.key("s"), 1)) is None
    assert run.read("s") is MISSING
    run.done("s", b'{"a":1}')
    assert run.read("s") == {"a": 1}
    assert run.fold.bytes == len(b'{"a":1}')


def test_a_failure_is_read_behind_its_error_handle_and_null_after_continue(nested: Nested) -> None:
    run = Run(nested())
    run.failed("s", route="error")
    assert run.read("s") == {"error": {"code": "block_failed", "message": "no"}}
    run = Run(nested())
    run.failed("s", route="out")
    assert run.read("s") is None
    run = Run(nested())
    run.failed("s")
    assert run.read("s") is MISSING


def test_a_block_that_was_passed_over_is_null_and_one_on_a_dead_path_is_missing(nested: Nested) -> None:
    run = Run(nested())
    run.fold.apply(e.NodeSkipped(run.key("s"), "skip_if"))
    run.fold.apply(e.NodeSkipped(run.key("z"), "pruned"))
    assert run.read("s") is None
    assert run.read("z") is MISSING


@pytest.mark.parametrize("kind", ["loop", "parallel"])
def test_the_results_of_a_container_are_made_when_it_exits(kind: str, nested: Nested) -> None:
    run = Run(nested(kind))
    run.fold.apply(e.RegionSized(run.key("c1:start"), 1, 2), None)
    for index in range(2):
        run.fold.apply(e.ScopesOpened(run.key("c1:start"), index, 1))
        run.done("b1", b"%d" % index, it(index))
    outputs = run.fold.bytes
    results = run.exit("c1", 2)
    assert results["results"] == [[0], [1]]
    assert run.fold.bytes == outputs + len(json.dumps(results, separators=(",", ":")))


def test_recorded_results_of_a_container_are_used_as_they_are(nested: Nested) -> None:
    run = Run(nested("loop"))
    run.fold.apply(e.RegionSized(run.key("c1:start"), 1, 1), None)
    run.done("b1", b"1", it(0))
    assert run.exit("c1", 1, b'{"results":["other"]}') == {"results": ["other"]}
    assert run.read("c1:end") == {"results": ["other"]}


def test_the_first_error_of_a_branch_is_its_result(nested: Nested) -> None:
    run = Run(nested("parallel", on_branch_error="collect"))
    run.fold.apply(e.RegionSized(run.key("c1:start"), 1, 2), None)
    run.fold.apply(e.ScopesOpened(run.key("c1:start"), 0, 2))
    run.failed("b1", it(0), caught=("branch", it(0)))
    run.fold.apply(e.NodeFailed(run.key("a1", it(0)), 1, e.ErrorInfo("later", ""), caught=("branch", it(0))))
    run.done("b1", b"1", it(1))
    results = run.exit("c1", 2)["results"]
    assert results == [{"error": {"code": "block_failed", "message": "no"}}, [1]]


def test_patches_change_the_variables_all_or_none(
    make_plan: Callable[..., Plan], make_node: Callable[..., Any]
) -> None:
    run = Run(make_plan(make_node("s"), variables={"n": 1}))
    run.fold.apply(e.VariablesPatched(run.key("s"), [["set", "$.n", 2]]))
    assert run.fold.values.variables == {"n": 2}
    with pytest.raises(BlockError):
        run.fold.apply(e.VariablesPatched(run.key("s"), [["set", "$.n", 3], ["append", "$.n", 4]]))
    assert run.fold.values.variables == {"n": 2}


def test_the_output_of_a_run_is_of_the_last_nodes_that_ran_and_counts_no_bytes(
    make_plan: Callable[..., Plan], make_node: Callable[..., Any]
) -> None:
    run = Run(make_plan(make_node("a"), make_node("b"), make_node("c"), ends=(1, 2)))
    run.done("a", b"1")
    run.done("b", b"2")
    run.fold.apply(e.NodeSkipped(run.key("c"), "pruned"))
    output = run.fold.run_output()
    assert json.loads(output) == 2
    run.fold.apply(e.RunFinished("succeeded"), output)
    assert run.fold.bytes == 2

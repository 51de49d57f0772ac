"""Edges and readiness: every edge ends up live or dead, exactly once; what order things finish in changes nothing."""

from __future__ import annotations

from tests.support.core.generator import Block
from tests.unit.executor.kernel.core.story import Story, block


def test_a_block_starts_in_the_same_step_in_which_its_source_ends() -> None:
    s = Story({"a": "b", "b": ""})
    assert s.start() == ["run started", "a starts"]
    assert s.done("a") == ["a -> out", "b starts"]
    assert s.commands() == ["run b (1)"]
    assert s.done("b") == ["b -> out", "run succeeded"]
    assert s.commands() == ["finish succeeded"]


def test_the_branch_not_taken_is_pruned_with_all_that_follows_from_it() -> None:
    s = Story({"if": "yes:b no:c", "b": "", "c": "d", "d": "e", "e": ""})
    s.start()
    assert s.done("if", "yes") == [
        "if -> yes",
        "c pruned by if",
        "d pruned by c",
        "e pruned by d",
        "b starts",
    ]


def test_a_join_waits_for_all_its_edges_and_runs_when_one_is_live() -> None:
    s = Story({"a": "b c", "b": "join", "c": "no:join", "join": ""})
    s.start()
    s.done("a")
    assert s.done("b") == ["b -> out"]
    assert s.done("c", "yes") == ["c -> yes", "join starts"]


def test_a_late_prune_through_other_blocks_does_not_take_a_live_join_along() -> None:
    s = Story({"a": "if b", "b": "join", "if": "no:x", "x": "y", "y": "join", "join": ""})
    s.start()
    s.done("a")
    s.done("b")
    assert s.done("if", "yes") == ["if -> yes", "x pruned by if", "y pruned by x", "join starts"]


def test_a_join_is_pruned_when_its_last_edge_dies_and_none_was_live() -> None:
    s = Story({"a": "if1 if2", "if1": "no:join", "if2": "no:join", "join": "after", "after": ""})
    s.start()
    s.done("a")
    assert s.done("if1", "yes") == ["if1 -> yes"]
    assert s.done("if2", "yes") == ["if2 -> yes", "join pruned by if2", "after pruned by join", "run succeeded"]


def test_two_edges_from_one_source_to_one_target_count_twice() -> None:
    s = Story({"if": "yes:b no:b", "b": ""})
    s.start()
    assert s.done("if", "no") == ["if -> no", "b starts"]


def test_no_matching_case_is_a_legal_dead_end() -> None:
    s = Story({"if": "yes:b", "b": ""})
    s.start()
    assert s.done("if", None) == ["if -> nowhere", "b pruned by if", "run succeeded"]


def test_skip_if_passes_over_the_block_while_what_follows_runs() -> None:
    s = Story({"a": "b error:c", "b": "", "c": ""})
    s.start()
    assert s.passed("a") == ["a skip_if", "c pruned by a", "b starts"]


def test_ready_blocks_start_first_in_first_out_ties_by_plan_order() -> None:
    s = Story({"a": "c b d", "b": "", "c": "", "d": ""}, max_concurrency=1)
    s.start()
    assert s.done("a") == ["a -> out", "c starts"]
    assert s.done("c") == ["c -> out", "b starts"]
    assert s.done("b") == ["b -> out", "d starts"]


def test_a_group_holds_back_its_members_and_nobody_else() -> None:
    shape: dict[str, str | Block] = {"a": "g1 g2 free", "g1": block(group=1), "g2": block(group=1), "free": ""}
    s = Story(shape, groups=(1,))
    s.start()
    assert s.done("a") == ["a -> out", "g1 starts", "free starts"]
    assert s.done("free") == ["free -> out"]
    assert s.done("g1") == ["g1 -> out", "g2 starts"]


def test_inline_blocks_take_no_slot() -> None:
    s = Story({"a": "slow if", "slow": "", "if": block("yes:b", inline=True), "b": ""}, max_concurrency=1)
    s.start()
    assert s.done("a") == ["a -> out", "if starts", "slow starts"]
    assert s.done("if", "yes") == ["if -> yes"]
    assert s.done("slow") == ["slow -> out", "b starts"]


def test_a_fact_about_an_attempt_that_is_over_changes_nothing() -> None:
    s = Story({"a": "b", "b": ""})
    s.start()
    s.done("a")
    assert s.done("a") == []
    assert s.start() == []
    s.done("b")
    assert s.done("b") == []
    assert s.cancel() == []


def test_a_chain_of_ten_thousand_is_pruned_without_recursion() -> None:
    size = 10_000
    shape = {"if": "no:b0", **{f"b{n}": f"b{n + 1}" for n in range(size)}, f"b{size}": ""}
    s = Story(shape)
    s.start()
    assert len(s.done("if", "yes")) == 1 + size + 1 + 1

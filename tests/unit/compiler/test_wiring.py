from __future__ import annotations

from compiler.document import Limits

from .support import CONDITION, block, codes, compiled, node, only, plan_of


def test_edges_name_what_is_wrong_with_them() -> None:
    result = compiled(
        {"draft": block(), "c": block("condition", cases=CONDITION), "n": block("note")},
        "start draft; draft drafft; unknown draft; draft.yes c; draft n; c.yse draft; draft start",
    )
    missing = only(result, "edge_target_missing")
    assert (missing.pointer, missing.hint) == ("/edges/1/target", 'Did you mean "draft"?')
    assert only(result, "edge_source_missing").pointer == "/edges/2/source"
    wrong = [d for d in result.diagnostics if d.code == "edge_handle_unknown"]
    assert [d.pointer for d in wrong] == ["/edges/3/handle", "/edges/5/handle"]
    assert wrong[1].hint == 'Did you mean "yes"?'
    assert only(result, "edge_to_note").pointer == "/edges/4/target"
    assert only(result, "trigger_has_input").pointer == "/edges/6"


def test_edges_do_not_cross_borders() -> None:
    result = compiled(
        {"l": block("loop", mode="for", count=2), "a": block(parent="l"), "z": block()},
        "start l; l.body a; start a; a z; l a; l.body z",
    )
    crossing = [d for d in result.diagnostics if d.code == "edge_crosses_border"]
    assert [d.pointer for d in crossing] == ["/edges/2", "/edges/3", "/edges/4", "/edges/5"]
    assert crossing[2].hint == "Connect it from the body handle."


def test_two_edges_between_two_blocks_count_as_two() -> None:
    plan = plan_of({"c": block("condition", cases=CONDITION), "j": block()}, "c.yes j; c.no j")
    assert plan.regions[0].indegree == (0, 1, 2)
    result = compiled({"a": block()}, "start a; start a")
    assert codes(result) == ["edge_duplicate"]
    assert result.plan is not None
    assert result.plan.regions[0].indegree == (0, 2)


def test_disabled_blocks_vanish_with_what_only_they_lead_to() -> None:
    result = compiled(
        {"a": block(enabled_=False), "b": block(), "d": block(), "m": block()}, "start a; a b; start d; b m; d m"
    )
    assert result.plan is not None
    assert [n.id for n in result.plan.nodes] == ["start", "d", "m"]
    assert result.plan.regions[0].indegree == (0, 1, 1)
    assert codes(result) == []


def test_a_disabled_container_takes_its_blocks_along() -> None:
    result = compiled(
        {
            "p": block("parallel", count=2, enabled_=False),
            "l": block("loop", "p", count=1),
            "a": block(parent="l"),
            "z": block(),
        },
        "start p; p.body l; l.body a; start z",
    )
    assert result.plan is not None
    assert [n.id for n in result.plan.nodes] == ["start", "z"]


def test_unreachable_blocks_warn_and_their_errors_do_not_stop_the_plan() -> None:
    result = compiled({"a": block(), "lost": block("nope"), "after": block()}, "start a; lost after")
    assert result.plan is not None
    assert codes(result, "error") == []
    assert [d.block for d in result.diagnostics if d.code == "block_unreachable"] == ["lost", "after"]
    assert only(result, "block_type_unknown").severity == "warning"


def test_the_trigger_chooses_what_is_compiled() -> None:
    blocks = {"hook": block("webhook"), "a": block(), "b": block(), "m": block()}
    wires = "start a; hook b; a m; b m"
    plan = plan_of(blocks, wires)
    assert [n.id for n in plan.nodes] == ["start", "a", "m"]
    assert plan.regions[0].indegree == (0, 1, 1), "a join does not wait for other triggers"
    other = plan_of(blocks, wires, trigger="hook")
    assert (other.trigger, [n.id for n in other.nodes]) == ("hook", ["hook", "b", "m"])


def test_triggers_count_times_blocks() -> None:
    triggers = {f"t{n}": block("start") for n in range(3)}  # beside the one there always is
    for size, wanted in ((20, []), (19, ["too_many_triggers"])):
        result = compiled(triggers | {"a": block()}, "start a", limits=Limits(trigger_blocks=size))
        assert codes(result, "error") == wanted
    assert only(result, "too_many_triggers").pointer == "/blocks"
    assert codes(compiled({"a": block()}, "start a", limits=Limits(trigger_blocks=1)), "error") == []


def test_triggers_that_cannot_be_chosen() -> None:
    assert only(compiled({"a": block()}, trigger="a"), "trigger_unknown").severity == "error"
    assert only(compiled({"a": block()}, trigger="stat"), "trigger_unknown").hint == 'Did you mean "start"?'
    several = compiled({"a": block(), "go": block("start")}, "start a; go a")
    assert only(several, "trigger_several").block == "start"
    assert several.plan is not None
    none = compiled({"start": block(), "a": block()}, "start a")
    assert codes(none, "error") == ["trigger_missing"]
    inside = compiled({"l": block("loop", count=1), "s": block("webhook", "l")}, "start l; l.body s")
    assert "trigger_in_container" in codes(inside, "error")


def test_parents_that_are_none() -> None:
    result = compiled(
        {
            "a": block(parent="lop"),
            "l": block("loop", "l2", count=1),
            "l2": block("loop", "l", count=1),
            "b": block(parent="a"),
        }
    )
    assert only(result, "parent_missing").block == "a"
    assert only(result, "parent_cycle").pointer == "/blocks/l/parent"
    assert only(result, "parent_not_container").block == "b"


def test_nesting_is_bounded() -> None:
    def nested(depth: int) -> list[str]:
        blocks = {f"l{i}": block("loop", f"l{i - 1}" if i else None, count=1) for i in range(depth)}
        wires = "start l0; " + "; ".join(f"l{i}.body l{i + 1}" for i in range(depth - 1))
        return codes(compiled(blocks | {"a": block(parent=f"l{depth - 1}")}, wires + f"; l{depth - 1}.body a"))

    assert nested(10) == []
    assert nested(11) == ["nesting_too_deep"]


def test_a_very_deep_nest_is_no_recursion() -> None:
    blocks = {f"l{i}": block("loop", f"l{i - 1}" if i else None, count=1) for i in range(3_000)}
    result = compiled(blocks, "start l0", limits=Limits(blocks=10_000))
    assert "nesting_too_deep" in codes(result)


def test_node_handles_stay() -> None:
    plan = plan_of({"a": block("approval", actions=["ok", "no"]), "b": block(), "c": block()}, "a.ok b; a.error c; a c")
    assert [(plan.node(e.target).id, e.handle) for e in node(plan, "a").out] == [
        ("b", "ok"),
        ("c", "error"),
        ("c", "out"),
    ]

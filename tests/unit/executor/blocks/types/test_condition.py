from typing import Any

import pytest

from compiler.catalog import Case
from executor.blocks.types.condition import block
from executor.errors import BlockError
from tests.unit.executor.blocks.types.flow import Sandbox, Throws, context, js

IF = {"id": "yes", "title": "if", "when": js("a")}
ELIF = {"id": "maybe", "title": "else if", "when": js("b")}
ELSE = {"id": "no", "title": "else"}


@pytest.mark.parametrize(
    ("table", "case", "title"),
    [
        ({"a": True, "b": True}, "yes", "if"),
        ({"a": [], "b": False}, "yes", "if"),
        ({"a": "", "b": 1}, "maybe", "else if"),
        ({"a": 0, "b": None}, "no", "else"),
    ],
)
async def test_the_first_case_that_is_true(table: dict[str, Any], case: str, title: str) -> None:
    sandbox = Sandbox(table)
    done = await block.run(context({"cases": [IF, ELIF, ELSE]}, js=sandbox))
    assert (done.route, done.output) == (case, {"case": case, "title": title, "result": True})
    assert sandbox.calls == [["a", "b"]]  # one call for all of them


@pytest.mark.parametrize("cases", [[IF], [IF, ELIF], []])
async def test_nothing_true_and_no_else(cases: list[dict[str, Any]]) -> None:
    done = await block.run(context({"cases": cases}, js={"a": False, "b": 0}))
    assert (done.route, done.output) == (None, {"case": None, "title": "", "result": False})


@pytest.mark.parametrize("when", [None, "", "  ", True])
async def test_an_empty_expression_is_the_else(when: Any) -> None:
    done = await block.run(context({"cases": [IF, {"id": "other", "when": when}]}, js={"a": False}))
    assert (done.route, done.output["title"]) == ("other", "")


async def test_a_literal_false_is_no_else() -> None:
    assert (await block.run(context({"cases": [{"id": "x", "when": False}]}))).route is None


async def test_a_plain_text_is_still_an_expression() -> None:
    assert (await block.run(context({"cases": [{"id": "x", "when": "1 > 2"}]}, js={"1 > 2": False}))).route is None


async def test_a_case_that_throws_after_the_chosen_one_does_not_matter() -> None:
    sandbox = Sandbox({"a": True, "b": Throws("boom")})
    assert (await block.run(context({"cases": [IF, ELIF]}, js=sandbox))).route == "yes"
    assert sandbox.calls == [["a", "b"], ["a"]]


@pytest.mark.parametrize("cases", [[IF], [IF, ELIF], [{**IF, "id": "x"}, ELSE]])
async def test_a_case_that_throws_fails_the_block_by_title(cases: list[dict[str, Any]]) -> None:
    with pytest.raises(BlockError) as caught:
        await block.run(context({"cases": cases}, js={"a": Throws("Cannot read properties of null"), "b": True}))
    assert caught.value.message == 'Evaluation error in condition "if": Cannot read properties of null'
    assert (caught.value.code, caught.value.retryable) == ("expression_failed", False)


async def test_fields_carried_along_as_sim_has_it() -> None:
    carried = {"score": 12, "result": "of the source"}
    done = await block.run(context({"cases": [IF, ELSE], "carry": carried}, js={"a": True}))
    assert done.output == {
        "score": 12, "conditionResult": True, "selectedOption": "yes", "case": "yes", "title": "if",
        "result": "of the source",
    }  # fmt: skip
    done = await block.run(context({"cases": [IF], "carry": None}, js={"a": False}))
    assert (done.output["conditionResult"], done.output["selectedOption"]) == (False, None)


def test_spec() -> None:
    assert block.spec.cases is not None and block.spec.output_from is not None
    assert block.spec.cases({"cases": [IF, {"id": 3}, "x", ELSE]}) == (Case("yes", "if"), Case("no", "else"))
    assert block.spec.cases({"cases": "text"}) == block.spec.cases({}) == ()
    schema = block.spec.output_from({})
    assert schema is not None and set(schema["properties"]) == {"case", "title", "result"}
    assert block.spec.output_from({"carry": "<s>"}) is None
    assert block.spec.inline


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        ([{"id": "a", "when": "1"}, {"id": "b"}], []),
        ([{"id": "a", "when": "1"}], [("else_missing", "/cases", True)]),
        ([{"id": "a", "when": ""}, {"id": "b", "when": "1"}], [("else_not_last", "/cases/0/when", False)]),
        ([], []),
        ("no list", []),
        (["no case"], [("else_missing", "/cases", True)]),
    ],
)
def test_only_the_last_case_matches_everything_else(cases: Any, found: list[tuple[str, str, bool]]) -> None:
    assert block.spec.check is not None
    assert [(one.code, one.pointer, one.of_block) for one in block.spec.check({"cases": cases})] == found

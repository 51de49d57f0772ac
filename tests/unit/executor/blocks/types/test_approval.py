"""What an approval asks the runtime to wait for."""

from typing import Any

import pytest

from executor.blocks.types import approval
from executor.blocks.types.form import block as form_block
from executor.kernel.handler.base import Suspend
from tests.unit.executor.blocks.types.pauses import NOW_MS, refused, suspend


async def test_approval() -> None:
    fields = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    params = {
        "title": "OK to send?", "text": "Look first.", "show": {"text": "draft"}, "fields": fields,
        "actions": ["approve", "ask_again"], "expires_in_s": "3600", "on_expire": "ask_again",
    }  # fmt: skip
    assert await suspend(approval.block, params) == Suspend(
        "approval",
        request={
            "title": "OK to send?",
            "text": "Look first.",
            "show": {"text": "draft"},
            "actions": ["approve", "ask_again"],
        },
        schema=fields,
        actions=("approve", "ask_again"),
        due_ms=NOW_MS + 3_600_000,
        on_expire="ask_again",
    )


async def test_an_approval_with_nothing_said_asks_yes_or_no() -> None:
    assert await suspend(approval.block, {}) == Suspend(
        "approval", request={"title": "B", "actions": ["approve", "reject"]}, actions=("approve", "reject")
    )


async def test_an_approval_without_actions_is_a_form() -> None:
    found = await suspend(approval.block, {"actions": [], "fields": {"properties": {"a": {}}}})
    assert (found.kind, found.actions) == ("form", ())
    assert found.schema == {"type": "object", "properties": {"a": {}}}


@pytest.mark.parametrize(
    "params",
    [
        {"on_expire": "later"},
        {"on_expire": "approve", "actions": ["yes"]},
        {"expires_in_s": "soon"},
        {"fields": "name"},
        {"fields": {"type": "nonsense"}},
        {"fields": {"type": "string"}},
        {"fields": {"type": ["array", "null"], "items": {}}},
        {"title": {"a": 1}},
        {"remind_before_s": 60},
        {"remind_before_s": 60, "expires_in_s": 60},
        {"remind_before_s": "61", "expires_in_s": "60"},
        {"remind_before_s": 0, "expires_in_s": 60},
        {"not_starter": "no"},
        {"not_starter": 0},
        {"by": ["ada"]},
    ],
)
async def test_approval_refuses(params: dict[str, Any]) -> None:
    assert await refused(approval.block, params)


async def test_a_reminder_comes_so_long_before_it_expires() -> None:
    found = await suspend(approval.block, {"expires_in_s": "3600", "remind_before_s": "600.5"})
    assert (found.due_ms, found.remind_ms) == (NOW_MS + 3_600_000, NOW_MS + 2_999_500)
    form: dict[str, Any] = {"properties": {"a": {}}}
    found = await suspend(form_block, {"fields": form, "expires_in_s": 60, "remind_before_s": 20})
    assert (found.due_ms, found.remind_ms) == (NOW_MS + 60_000, NOW_MS + 40_000)
    assert (await suspend(approval.block, {"expires_in_s": 3600})).remind_ms is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"remind_before_s": 60}, "The question does not expire, so there is no time before that."),
        (
            {"remind_before_s": "60", "expires_in_s": 60},
            "It must be shorter than the time after which the question expires.",
        ),
        ({"remind_before_s": "<start.n>", "expires_in_s": 60}, None),
        ({"remind_before_s": 60, "expires_in_s": "<start.n>"}, None),
        ({"remind_before_s": 30, "expires_in_s": 60}, None),
    ],
)
def test_a_reminder_that_cannot_be_is_found_while_drawing(params: dict[str, Any], message: str | None) -> None:
    for block in (approval.block, form_block):
        check = block.spec.check
        assert check is not None
        found = check(params)
        assert [(one.pointer, one.message) for one in found] == ([("/remind_before_s", message)] if message else [])


def test_the_actions_of_an_approval_are_handles() -> None:
    cases = approval.block.spec.cases
    assert cases is not None
    assert [(case.id, case.title) for case in cases({"actions": ["ask_again", "ok"]})] == [
        ("ask_again", "Ask again"),
        ("ok", "Ok"),
    ]
    assert [case.id for case in cases({})] == ["approve", "reject"]
    assert cases({"actions": []}) == ()
    assert [case.id for case in cases({"actions": ["a", 1, None]})] == ["a"]
    assert cases({"actions": "oops"}) == ()
    assert approval.block.spec.handles == ("out",)


def test_the_output_of_an_approval_follows_from_its_form() -> None:
    output_from = approval.block.spec.output_from
    assert output_from is not None
    form = {"properties": {"note": {"type": "string"}}}
    schema = output_from({"fields": form})
    assert schema is not None
    assert list(schema["properties"]) == ["note", "action", "answered_by", "answered_at", "expired"]
    assert "additionalProperties" not in schema
    open_forms: list[dict[str, Any]] = [
        {}, {"fields": {}}, {"fields": "<x.y>"}, {"fields": form | {"additionalProperties": True}}
    ]  # fmt: skip
    for params in open_forms:
        open_ = output_from(params)
        assert open_ is not None and open_["additionalProperties"] is True

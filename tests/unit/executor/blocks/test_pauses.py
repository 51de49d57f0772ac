"""wait, signal and approval: what they ask the runtime to wait for."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from executor.blocks import approval, signal, wait
from executor.blocks.base import Suspend
from executor.errors import BlockError
from tests.unit.executor.blocks.flow import context

NOW_MS = 1_700_000_000_000


async def _suspend(block: Any, params: dict[str, Any]) -> Suspend:
    outcome = await block.run(context(params, now_ms=NOW_MS))
    assert isinstance(outcome, Suspend)
    return outcome


async def _refused(block: Any, params: dict[str, Any]) -> str:
    with pytest.raises(BlockError) as caught:
        await _suspend(block, params)
    assert (caught.value.code, caught.value.retryable) == ("params_invalid", False)
    return caught.value.message


@pytest.mark.parametrize(
    ("params", "due_ms"),
    [
        ({"seconds": 0}, NOW_MS),
        ({"seconds": 1.5}, NOW_MS + 1_500),
        ({"seconds": "90"}, NOW_MS + 90_000),
        ({"seconds": "", "until": "2023-11-14T22:13:21Z"}, NOW_MS + 1_000),
        ({"until": "2023-11-14T23:13:21+01:00"}, NOW_MS + 1_000),
        ({"until": "2023-11-14 22:13:21.5"}, NOW_MS + 1_500),
        ({"until": "2023-11-15"}, 1_700_006_400_000),
        ({"until": "1999-01-01T00:00:00Z"}, NOW_MS),
    ],
)
async def test_wait_is_due(params: dict[str, Any], due_ms: int) -> None:
    assert await _suspend(wait.block, params) == Suspend("timer", due_ms=due_ms)


@pytest.mark.parametrize(
    "params",
    [{}, {"seconds": -1}, {"seconds": "soon"}, {"seconds": True}, {"seconds": 1e12}, {"seconds": float("nan")},
     {"until": "tomorrow"}, {"until": "2023-13-01"}, {"until": 5}, {"seconds": 1, "until": "2030-01-01"},
     {"until": "9999-12-31T23:59:59-01:00"}, {"until": "9999-12-31T23:59:59.999999Z"}],
)  # fmt: skip
async def test_wait_refuses(params: dict[str, Any]) -> None:
    assert await _refused(wait.block, params)


async def test_signal() -> None:
    assert await _suspend(
        signal.block, {"name": "paid", "correlation": 42, "expires_in_s": 10, "on_expire": "skip"}
    ) == (
        Suspend(
            "signal",
            request={"title": "paid", "correlation": "42"},
            due_ms=NOW_MS + 10_000,
            on_expire="skip",
            name="paid",
            correlation="42",
        )
    )
    plain = await _suspend(signal.block, {"name": "paid", "correlation": ""})
    assert (plain.correlation, plain.due_ms, plain.on_expire) == (None, None, "fail")


@pytest.mark.parametrize("params", [{}, {"name": ""}, {"name": {}}, {"name": "a", "on_expire": "approve"}])
async def test_signal_refuses(params: dict[str, Any]) -> None:
    assert await _refused(signal.block, params)


async def test_approval() -> None:
    fields = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    params = {
        "title": "OK to send?", "text": "Look first.", "show": {"text": "draft"}, "fields": fields,
        "actions": ["approve", "ask_again"], "expires_in_s": "3600", "on_expire": "ask_again",
    }  # fmt: skip
    assert await _suspend(approval.block, params) == Suspend(
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
    assert await _suspend(approval.block, {}) == Suspend(
        "approval", request={"title": "B", "actions": ["approve", "reject"]}, actions=("approve", "reject")
    )


async def test_an_approval_without_actions_is_a_form() -> None:
    found = await _suspend(approval.block, {"actions": [], "fields": {"properties": {"a": {}}}})
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
    ],
)
async def test_approval_refuses(params: dict[str, Any]) -> None:
    assert await _refused(approval.block, params)


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


@pytest.mark.parametrize("module", [wait, signal, approval])
def test_the_params_are_a_json_schema_with_titles(module: Any) -> None:
    params = module.block.spec.params
    Draft202012Validator.check_schema(params)
    assert all(field.get("title") for field in params["properties"].values())

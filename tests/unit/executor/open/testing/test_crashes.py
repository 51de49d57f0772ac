"""crash_everywhere on workflows of users: what is right passes, and planted bugs are found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.typed import TypedBlock, block
from executor.kernel.handler.base import StepContext
from executor.open.testing import crashes
from executor.open.testing.crashes import CrashReport, crash_everywhere
from executor.open.testing.outside import Outside
from tests.support.documents import document

seen: dict[str, int] = {}  # what a block should not do: keep state in memory


def charging() -> dict[str, Any]:
    """A charge by itself."""
    return document(
        "charging", "start charge", blocks={"charge": {"type": "charge", "params": {"amount": "<start.amount>"}}}
    )


def paying() -> dict[str, Any]:
    """A charge, an approval, an hour of waiting, a receipt."""
    return document(
        "paying",
        "start charge",
        "charge ask",
        "ask approve pause",
        "pause receipt",
        blocks={
            "charge": {"type": "charge", "params": {"amount": "<start.amount>"}},
            "ask": {"type": "approval", "params": {"title": "Send?"}},
            "pause": {"type": "wait", "params": {"seconds": 3_600}},
            "receipt": {"type": "set", "params": {"value": {"paid": "<charge.amount>"}}},
        },
    )


async def crashed(outside: Outside, charge: TypedBlock[..., Any], made: dict[str, Any]) -> CrashReport:
    answers = {"ask": "approve"}
    return await crash_everywhere(made, {"amount": 7}, blocks=[charge], answers=answers, outside=outside, check=False)


async def test_a_block_that_uses_its_idempotency_key_passes(tmp_path: Path) -> None:
    outside = Outside(tmp_path)

    @block(type="charge", effect="write", idempotent=True)
    async def charge(amount: int, ctx: StepContext) -> dict[str, Any]:
        outside.record({"charged": amount}, once=ctx.idempotency_key)
        return {"amount": amount}

    report = await crashed(outside, charge, paying())
    assert report.ok, report
    assert report.status == "succeeded" and report.output == {"paid": 7}
    assert report.commits > 5 and report.crashes > 10 and report.asked == ()


async def test_a_write_that_cannot_be_repeated_is_asked_about(tmp_path: Path) -> None:
    outside = Outside(tmp_path)

    @block(type="charge", effect="write")
    async def charge(amount: int) -> dict[str, Any]:
        outside.record({"charged": amount})
        return {"amount": amount}

    report = await crashed(outside, charge, charging())
    assert report.ok, report
    assert report.asked == ("charge",)


async def test_a_block_that_says_it_has_no_effect_and_has_one_is_found(tmp_path: Path) -> None:
    outside = Outside(tmp_path)

    @block(type="charge", effect="none")
    def charge(amount: int) -> dict[str, Any]:
        outside.record({"charged": amount})
        return {"amount": amount}

    report = await crashed(outside, charge, charging())
    assert {problem.kind for problem in report.problems} == {"effect_repeated"}
    problem = report.problems[0]
    assert problem.block == "charge" and problem.idempotency_key is not None
    assert problem.idempotency_key.endswith(":charge") and problem.idempotency_key in problem.message
    assert "had an effect 2 times instead of 1" in str(report)


async def test_a_block_that_keeps_state_in_memory_is_found(tmp_path: Path) -> None:
    @block(type="charge", effect="read")
    async def charge(amount: int) -> dict[str, Any]:
        seen["amount"] = amount
        return {"amount": 0}

    @block(type="recall", effect="read")
    async def recall() -> int:
        return seen.get("amount", 0)

    made = document(
        "recalling",
        "start charge",
        "charge recall",
        blocks={"charge": {"type": "charge", "params": {"amount": 7}}, "recall": {"type": "recall"}},
    )
    with pytest.raises(AssertionError, match="output is 0 instead of 7"):
        await crash_everywhere(made, blocks=[charge, recall])
    assert seen == {}  # of this process


async def test_a_workflow_that_does_not_end_is_told(tmp_path: Path) -> None:
    made = document("asking", "start ask", blocks={"ask": {"type": "approval", "params": {"title": "Send?"}}})
    with pytest.raises(AssertionError, match="block 'ask' waits for an approval, and there is no answer"):
        await crash_everywhere(made)


async def test_steps_and_expressions(tmp_path: Path) -> None:
    outside = Outside(tmp_path)

    async def refund(order: str, ctx: StepContext) -> Any:
        async def pay() -> str:
            outside.record(f"paid {order}", once=f"{ctx.idempotency_key}:pay")
            return f"paid {order}"

        return await ctx.step("tool", "pay", order, pay, effect="read")

    made = document(
        "steps",
        "start f",
        "f a",
        blocks={
            "f": {"type": "function", "params": {"code": "return [1, 2, 3].map(n => n * <start.n>)[2]"}},
            "a": {
                "type": "python",
                "params": {"function": "refund", "arguments": {"order": "<f.result>"}},
                "policy": {"on_lost": "retry"},
            },
        },
    )
    report = await crash_everywhere(made, {"n": 2}, functions={"refund": refund}, outside=outside)
    assert report.ok and report.error is None, report
    assert report.output == "paid 6" and report.commits >= 4
    some = await crash_everywhere(made, {"n": 2}, functions={"refund": refund}, outside=outside, every=3)
    assert some.ok and 2 <= some.crashes <= report.crashes // 2, some


async def test_a_process_that_ends_by_itself_is_not_taken_for_the_end_of_the_run(tmp_path: Path) -> None:
    @block(type="charge", effect="write", idempotent=True)
    async def charge(amount: int) -> int:
        if (tmp_path / "charged").exists():
            os._exit(7)
        (tmp_path / "charged").touch()
        return amount

    with pytest.raises(AssertionError, match="before commit 2: the process ended with 7"):
        await crashed(Outside(tmp_path), charge, charging())


async def test_a_run_with_too_many_commits_is_not_tested_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @block(type="charge", effect="write", idempotent=True)
    async def charge(amount: int) -> int:
        return amount

    monkeypatch.setattr(crashes, "COMMITS_MAX", 2)
    with pytest.raises(AssertionError, match="2 commits or more"):
        await crashed(Outside(tmp_path), charge, paying())
    monkeypatch.undo()
    report = await crash_everywhere(paying(), {"amount": 7}, blocks=[charge], answers={"ask": "approve"}, every=700)
    assert report.ok and report.crashes == 1, report
    with pytest.raises(ValueError, match="every must be 1 or more, not 0"):
        await crash_everywhere(paying(), every=0)

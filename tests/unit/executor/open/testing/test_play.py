"""A block by itself."""

from __future__ import annotations

from typing import Any

import pytest

from executor.blocks.types.typed import block
from executor.errors import BlockError
from executor.kernel.handler.base import StepContext
from executor.open.testing.play import Stuck, run_block


@block(type="greet", effect="none")
async def greet(name: str, ctx: StepContext, fails: int = 0) -> dict[str, Any]:
    """Greets."""
    ctx.log("hello,", name)
    ctx.emit("hel")
    ctx.emit("lo")
    if ctx.attempt <= fails:
        raise BlockError("not yet", code="not_yet")
    return {"greeting": f"Hello, {name}!"}


async def test_a_block_runs_by_itself() -> None:
    ran = await run_block(greet, {"name": "<start.who>"}, input={"who": "Ada"})
    assert (ran.status, ran.output, ran.route, ran.error) == ("succeeded", {"greeting": "Hello, Ada!"}, "out", None)
    assert (ran.log, ran.text, ran.attempts) == (("hello, Ada",), "hello", 1)


async def test_attempts_that_wait_are_made_at_once() -> None:
    retry = {"retry": {"max_attempts": 3, "initial_ms": 3_600_000}}
    ran = await run_block(greet, {"name": "Ada", "fails": 2}, policy=retry)
    assert (ran.status, ran.attempts) == ("succeeded", 3)
    failed = await run_block(greet, {"name": "Ada", "fails": 2})
    assert failed.status == "failed" and failed.error is not None and failed.error["code"] == "not_yet"


async def test_installed_blocks_and_answers() -> None:
    asked = await run_block("approval", {"title": "Pay?"}, answers="approve")
    assert asked.route == "out" and asked.output["action"] == "approve"
    with pytest.raises(Stuck, match="block 'block' waits for an approval"):
        await run_block("approval", {"title": "Pay?"})


async def test_params_that_do_not_fit_are_refused() -> None:
    ran = await run_block(greet, {})
    assert (ran.status, ran.output, ran.attempts) == ("invalid", None, 0)
    assert any("Name is required" in finding.message for finding in ran.findings)

"""Time that is moved by hand, scripted blocks, and runs that are played to their end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from executor.kernel.handler.base import Done
from executor.open.testing.engines import ManualClock, engine
from executor.open.testing.play import finish
from executor.open.testing.scripted import failure, scripted
from tests.support.documents import document
from tests.support.runs import outputs

ORDER = document(
    "order",
    "start mail",
    "mail pause",
    "pause hear",
    blocks={
        "mail": {
            "type": "email",
            "params": {"to": "a@b.example", "subject": "S", "body": "B"},
            "policy": {"retry": {"max_attempts": 2, "initial_ms": 60_000}},
        },
        "pause": {"type": "wait", "params": {"seconds": 3_600}},
        "hear": {"type": "signal", "params": {"name": "paid"}},
    },
)


async def test_time_stands_still_until_it_is_moved() -> None:
    clock, mail = ManualClock(), scripted("email", failure("busy"), {"sent": True})
    async with engine(blocks=[mail], clock=clock) as opened:
        run = (await opened.submit(ORDER)).run
        await clock.advance(0)
        assert [call.attempt for call in mail.calls] == [1]
        await clock.advance(120)
        assert [call.attempt for call in mail.calls] == [1, 2] and mail.calls[0].params["to"]
        assert (await opened.runs.view(run)).waits[0].kind == "timer"
        await clock.advance(3_600)
        assert (await opened.runs.view(run)).waits[0].kind == "signal"
    with pytest.raises(ValueError, match="cannot be set back"):
        clock.set(0)


async def test_a_clock_that_is_moved_waits_for_a_slow_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, mail = ManualClock(), scripted("email", failure("busy"), {"sent": True})
    async with engine(blocks=[mail], clock=clock) as opened:
        await opened.submit(ORDER)
        await clock.advance(0)
        claim = opened.store.claim

        async def claim_slowly(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0.2)
            return await claim(*args, **kwargs)

        monkeypatch.setattr(opened.store, "claim", claim_slowly)
        await clock.advance(120)
        assert [call.attempt for call in mail.calls] == [1, 2]


async def test_a_run_is_played_to_its_end() -> None:
    mail = scripted("email", failure("busy"), lambda ctx: Done({"sent": ctx.attempt}))
    async with engine(blocks=[mail]) as opened:
        run = (await opened.submit(ORDER)).run
        view = await finish(opened, run, {"hear": {"amount": 7}})
        assert view.status == "succeeded"
        assert outputs(view)["mail"] == {"sent": 2} and outputs(view)["hear"]["payload"] == {"amount": 7}


def test_a_script_is_like_the_block_that_it_replaces() -> None:
    assert scripted("email").spec.params["required"] == ["to", "subject"]
    assert scripted("of_mine").spec.effect == "write"

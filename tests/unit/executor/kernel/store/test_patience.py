from __future__ import annotations

import logging

import pytest

from executor.errors import BlockError, StoreError
from executor.kernel.process.repeated import Outage
from executor.kernel.store import patience
from executor.kernel.store.patience import with_retries

log = logging.getLogger("weft.test")


class Asked:
    """Fails so many times, then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "answer"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES_S", (0, 0, 0))
    monkeypatch.setattr(patience, "OUTAGE", Outage())


async def ask(asked: Asked) -> str:
    return await with_retries(asked, what="a checkpoint", failed="it could not be stored", log=log)


async def test_the_store_is_asked_again_three_times(caplog: pytest.LogCaptureFixture) -> None:
    assert await ask(asked := Asked(3, StoreError("the disk is full"))) == "answer"
    assert asked.calls == 4
    (line,) = (record.message for record in caplog.records)
    assert line == "the database failed: the disk is full: a checkpoint was tried again (1 times)"


async def test_after_that_the_block_fails_and_may_be_tried_again() -> None:
    with pytest.raises(BlockError) as failed:
        await ask(asked := Asked(4, StoreError("the disk is full")))
    assert asked.calls == 4
    assert (failed.value.message, failed.value.retryable) == ("it could not be stored: the disk is full", True)


async def test_other_errors_are_not_the_stores() -> None:
    with pytest.raises(ZeroDivisionError):
        await ask(asked := Asked(1, ZeroDivisionError()))
    assert asked.calls == 1

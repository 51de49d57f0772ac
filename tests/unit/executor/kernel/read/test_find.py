"""What is not there, or is deleted meanwhile, is NotFound."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from executor.errors import CorruptJournal, NotFound
from executor.kernel.read.find import existing_run, find_run, find_version
from executor.kernel.store.topics.store import Store


class Rows:
    """Run `r` until it is deleted; versions 1 and 2 of workflow `w`, of which 2 is active."""

    def __init__(self) -> None:
        self.deleted = False

    async def get_run(self, run: str) -> Any:
        return SimpleNamespace(id=run) if run == "r" and not self.deleted else None

    async def get_workflow(self, name: str, version: int | None = None) -> Any:
        number = 2 if version is None else version
        return SimpleNamespace(name=name, version=number) if name == "w" and number in (1, 2) else None

    async def named(self, text: str) -> str:
        return text


async def test_a_run_or_not_found() -> None:
    store = cast(Store, Rows())
    assert (await find_run(store, "r")).id == "r"
    with pytest.raises(NotFound, match="there is no run 'other'"):
        await find_run(store, "other")


@pytest.mark.parametrize("error", [None, CorruptJournal("its plan is missing")])
async def test_a_run_that_is_deleted_meanwhile_is_not_found(error: Exception | None) -> None:
    rows = Rows()
    with pytest.raises(NotFound):
        async with existing_run(cast(Store, rows), "r"):
            rows.deleted = True
            if error is not None:
                raise error


async def test_an_error_about_a_run_that_is_still_there_stays() -> None:
    with pytest.raises(CorruptJournal):
        async with existing_run(cast(Store, Rows()), "r"):
            raise CorruptJournal("its plan is missing")


@pytest.mark.parametrize(("asked", "found"), [(None, 2), (1, 1), (2, 2)])
async def test_a_version_of_a_workflow(asked: int | None, found: int) -> None:
    assert (await find_version(cast(Store, Rows()), "w", asked)).version == found


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [("x", None, "there is no workflow 'x'"), ("w", 3, "there is no version 3 of workflow 'w'")],
)
async def test_no_such_version(name: str, version: int | None, message: str) -> None:
    with pytest.raises(NotFound, match=message) as caught:
        await find_version(cast(Store, Rows()), name, version)
    assert caught.value.code == "workflow_not_found"

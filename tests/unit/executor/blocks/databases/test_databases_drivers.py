"""Drivers are imported by the first query, off the event loop."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from executor.blocks.databases import databases
from executor.blocks.databases.databases import Databases
from executor.blocks.databases.rows import Query
from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError

SLOW = """
import time
time.sleep(0.2)
async def ask(*parts):
    return end()
time.sleep(0.2)
def end():
    return 1
"""


def driver(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Databases:
    """Databases with one driver, for slow://, whose file has this text."""
    (folder / "a_slow_driver.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "a_slow_driver", raising=False)
    monkeypatch.setattr(databases, "_DRIVERS", ((("slow://",), "a_slow_driver", lambda: "slow:// needs a package"),))
    return Databases(GuardedClient())


async def test_queries_wait_for_an_import_that_another_one_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = driver(tmp_path, monkeypatch, SLOW)

    async def asked(after_s: float) -> object:
        await asyncio.sleep(after_s)
        return await found.ask("slow://a/b", Query("SELECT 1", parameters={}), run="a run")

    assert await asyncio.gather(*map(asked, (0, 0.1, 0.3))) == [1, 1, 1]


async def test_a_driver_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = driver(tmp_path, monkeypatch, "import no_such_package")
    for _ in range(2):
        with pytest.raises(BlockError, match=r"slow:// needs a package \(No module named 'no_such_package'\)"):
            await found.ask("slow://a/b", Query("SELECT 1", parameters={}), run="a run")

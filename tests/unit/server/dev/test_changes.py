from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from server.dev import changes as module
from server.dev.changes import changes


async def test_each_change_of_a_python_file_is_reported_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    flow, stop = tmp_path / "flow.py", asyncio.Event()
    flow.write_text("a")
    (tmp_path / ".venv").mkdir()
    (tmp_path / "steps").mkdir()
    found = changes(tmp_path, stop)
    await anext(found)
    flow.write_text("abc")  # while the first text is read
    await asyncio.wait_for(anext(found), 10)
    edits: tuple[Callable[[], object], ...] = (
        lambda: flow.write_text("ab"), lambda: (tmp_path / "steps" / "new.py").write_text(""), flow.unlink
    )  # fmt: skip
    for edit in edits:
        coming = asyncio.ensure_future(anext(found))
        (tmp_path / ".venv" / "other.py").write_text("")
        (tmp_path / "notes.txt").write_text("")
        assert not (await asyncio.wait([coming], timeout=0.1))[0]
        edit()
        await asyncio.wait_for(coming, 10)
    stop.set()
    with pytest.raises(StopAsyncIteration):
        await anext(found)

"""A durable function that writes files, connects or starts programs past its event loop is refused, with its line."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from executor.service.views import RunView

WORK: dict[str, Callable[[], Any]] = {}


@weft.step
async def work(name: str) -> str:
    WORK[name]()
    return name


@weft.durable
async def does(name: str, swallows: bool = False, steps: bool = False) -> str:
    if steps:
        return await work(name)
    try:
        WORK[name]()
    except BaseException:
        if not swallows:
            raise
    return "done"


async def played(name: str, **options: Any) -> RunView:
    async with engine(workflows=[does]) as opened:
        return await finish(opened, (await opened.submit(does, name=name, **options)).run)


def connect() -> None:
    with socket.socket() as one:
        one.connect(("127.0.0.1", 9))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "open": (lambda: open("/tmp/weft-guard", "w"), "it writes a file"),  # noqa: SIM115  # it is refused
    "os.open": (lambda: os.open("/tmp/weft-guard", os.O_CREAT), "it writes a file"),
    "append": (lambda: Path("/tmp/weft-guard").write_text("a"), "it writes a file"),
    "remove": (lambda: Path("/tmp/weft-guard").unlink(), "it changes files"),
    "socket": (connect, "it uses the network"),
    "urlopen": (lambda: urllib.request.urlopen("http://127.0.0.1:9"), "the network"),
    "run": (lambda: subprocess.run(["true"], check=True), "it starts another program"),
    "system": (lambda: os.system("true"), "it starts another program"),
    "sqlite3": (lambda: sqlite3.connect(":memory:"), "it opens a database"),
}
if sys.version_info >= (3, 13):  # which has an event for it
    REFUSED["sleep"] = (lambda: time.sleep(0), "await weft.sleep")


@pytest.mark.parametrize("name", [name for name, (_, said) in REFUSED.items() if said])
async def test_it_is_refused_with_the_line_also_if_the_code_catches_it(name: str) -> None:
    WORK[name], said = REFUSED[name]
    for swallows in (False, True):
        error = (await played(name, swallows=swallows)).error
        assert error is not None and error["code"] == "not_deterministic"
        assert error["message"].startswith(
            f"test_guard.py:{WORK[name].__code__.co_firstlineno + (name == 'socket') * 2}: "
        )
        assert said in error["message"]
        assert error["traceback"].count(error["message"]) == 1
    assert not Path("/tmp/weft-guard").exists()


async def test_a_step_may_do_it() -> None:
    WORK["sleep"] = lambda: time.sleep(0)
    assert (await played("sleep", steps=True)).output == "sleep"


async def test_reading_importing_logging_garbage_and_other_threads_are_no_concern_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "weft_guard_imported.py").write_text("found = 3\n")
    file = logging.FileHandler(tmp_path / "x.log", delay=True)
    log = logging.getLogger("weft_guard")
    log.addHandler(file)
    done = threading.Event()

    def beside() -> None:
        (tmp_path / "beside").write_text("x")
        done.set()

    def permitted() -> None:
        assert importlib.import_module("weft_guard_imported").found == 3
        assert (tmp_path / "weft_guard_imported.py").read_text()
        log.error("hello")
        threading.Thread(target=beside).start()
        assert done.wait(5)

    class Garbage:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            (tmp_path / "removed").write_text("x")

    def collecting() -> None:
        Garbage()
        gc.collect()

    WORK["collecting"] = collecting
    assert (await played("collecting")).output == "done"
    assert (tmp_path / "removed").exists()
    WORK["permitted"] = permitted
    with contextlib.closing(file):
        assert (await played("permitted")).output == "done"
    assert "hello" in (tmp_path / "x.log").read_text()
    assert list((tmp_path / "__pycache__").glob("weft_guard_imported*"))

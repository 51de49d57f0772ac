"""The scenario, broken at its system calls. `python -m tests.faults.syscalls` runs all of them; so does `make soak`."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.seccomp import KILL, PASS, Call, forbidden, hold
from tests.support.child import KILLED, PLAYED
from tests.support.size import WHOLE, size

ROOT = Path(__file__).parents[2]
EVERY = size(600, 1)
# Newer Pythons say so of pytest-xdist's thread, which the children here do not need.
pytestmark = [
    pytest.mark.proof,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    if (reason := forbidden()) is not None:
        pytest.skip(reason)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "watched").write_bytes(b"before")
    return tmp_path.resolve()


def in_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_calls_of_every_thread_are_seen_and_those_for_other_files_are_not(folder: Path) -> None:
    seen = []

    def see(call: Call) -> int:
        seen.append((call.name.removesuffix("at"), call.file))
        return PASS

    def work() -> None:
        os.chdir(folder)
        watched = os.open("watched", os.O_RDWR)
        other = os.open("other", os.O_RDWR | os.O_CREAT)
        here = os.open(".", os.O_RDONLY)
        os.write(other, b"x")
        in_thread(lambda: os.pwrite(watched, b"after!", 0))
        os.fdatasync(watched)
        os.ftruncate(watched, 5)
        os.fsync(here)
        os.unlink("other")
        os.unlink("watched")
        os.write(watched, b"gone")
        os.close(os.open("watched", os.O_CREAT))
        os.unlink("watched", dir_fd=here)

    code = hold(work, folder, {str(folder / "watched"): "it", str(folder): "folder"}, see)
    assert code == PLAYED, (folder / "error").read_text()
    assert seen == [
        ("pwrite64", "it"),
        ("fdatasync", "it"),
        ("ftruncate", "it"),
        ("fsync", "folder"),
        ("unlink", "it"),
        ("write", "it"),
        ("unlink", "it"),
    ]


def test_a_process_that_is_killed_at_a_call_has_not_made_it(folder: Path) -> None:
    def work() -> None:
        watched = os.open(folder / "watched", os.O_RDWR)
        in_thread(lambda: os.write(watched, b"after!"))

    code = hold(work, folder, {str(folder / "watched"): "it"}, lambda call: KILL)
    assert (code, (folder / "watched").read_bytes()) == (KILLED, b"before")


def test_a_call_that_is_refused_raises_and_does_nothing(folder: Path) -> None:
    def work() -> None:
        watched = os.open(folder / "watched", os.O_RDWR)
        with pytest.raises(OSError, match="No space left"):
            os.write(watched, b"after!")

    code = hold(work, folder, {str(folder / "watched"): "it"}, lambda call: errno.ENOSPC)
    assert code == PLAYED, (folder / "error").read_text()
    assert (folder / "watched").read_bytes() == b"before"


def test_where_calls_cannot_be_held_it_says_why(folder: Path) -> None:
    def work() -> None:  # inside a process whose calls are held already
        reason = forbidden()
        assert reason == "this machine does not let seccomp hold system calls: Device or resource busy", reason

    assert hold(work, folder, {}, lambda call: PASS) == PLAYED, (folder / "error").read_text()


@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 300)
async def test_nothing_acknowledged_is_lost_whichever_system_call_it_breaks_at() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.syscalls", "--every", str(EVERY)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    table = out.decode()
    print(table)
    assert table.endswith("\n0 violations\n")
    assert process.returncode == 0
    for action in ("kill", "EIO", "ENOSPC"):
        reached = re.search(rf"'{action}': (\d+)", table)
        assert reached is not None
        assert int(reached[1]) > 0

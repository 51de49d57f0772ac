"""docs/tutorial/in-python.md, followed as a newcomer would, with the wheel alone: its files, changes and commands, in
its order, a kill included."""

from __future__ import annotations

import os
import queue
import random
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.test_wheel import built, wheel_in
from tests.support.environments import INSTALL_S, installed, unhashed
from tests.support.loopback import sitecustomize as loopback
from tests.support.server import ROOT, free_port

PAGE = (ROOT / "docs/tutorial/in-python.md").read_text()
KILL = 'pkill -9 -f "weft dev"'  # of the page; the test kills what it has started
WAIT_S = 60.0

pytestmark = [pytest.mark.proof, pytest.mark.timeout(INSTALL_S + 500), pytest.mark.xdist_group("wheel")]
__all__ = ["built"]  # a fixture


class Program:
    """A command that runs beside the others. `until` waits for a part of what it prints."""

    def __init__(self, words: list[str], folder: Path, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            words, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.printed: list[str] = []

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def until(self, part: str) -> str:
        """Return the next line that has the part in it."""
        end = time.monotonic() + WAIT_S
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"not printed: {part}\n{''.join(self.printed)}"
            self.printed.append(line)
            if part in line:
                return line

    def ends(self) -> int:
        return self._process.wait(WAIT_S)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(WAIT_S)


class Newcomer:
    """Does what the blocks of the page have, one after another, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left: list[tuple[str, str]] = re.findall(
            r"^```(sh|python|diff|text)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE
        )
        self._lines: list[str] = []  # of the block of commands that was begun
        own = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "PYTHON"))}
        # Without the checkout, but with the guard that fails a test which dials another machine.
        more = {
            "WEFT_PORT": str(free_port(random.Random())), "WEFT_LEASE_MS": "1000", "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(Path(loopback.__file__).parent),
        }  # fmt: skip
        self._environ = {**own, **more}
        self._started: list[Program] = []

    def saves(self) -> None:
        """Save the file of the next block, or make the changes that it shows."""
        kind, text = self._next()
        if kind == "python":
            name = text.partition("\n")[0].removeprefix("# ")
            (self.folder / name).write_text(text)
            return
        assert kind == "diff"
        file = self.folder / "trip.py"
        code = file.read_text()
        for hunk in text.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            assert code.count(before) == 1, f"trip.py does not have this once:\n{before}\n{code}"
            code = code.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))
        file.write_text(code)

    def reads(self) -> str:
        """Return what the page shows next."""
        kind, text = self._next()
        assert kind == "text"
        return text

    def types(self, line: str, *, input: str = "", code: int = 0, **filled: str) -> str:
        """Run the next command of the page, which is `line`, and return what it prints."""
        done = subprocess.run(
            self._words(line, filled), cwd=self.folder, env=self._environ, capture_output=True, text=True,
            check=False, timeout=200, input=input,
        )  # fmt: skip
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def types_until(self, part: str, line: str) -> str:
        """Run the next command, again until it prints the part."""
        end = time.monotonic() + WAIT_S
        while part not in (printed := self.types(line)):
            assert time.monotonic() < end, printed
            self._lines.insert(0, line)
        return printed

    def starts(self, line: str, *, again: bool = False) -> Program:
        """Run it beside the others. `again`: the page has it in a sentence."""
        if again:
            assert f"Start `{line}` again." in PAGE
            self._lines.insert(0, line)
        program = Program(self._words(line, {}), self.folder, self._environ)
        self._started.append(program)
        return program

    def is_at_the_end(self) -> None:
        assert self.left == [] and self._lines == []

    def ends(self) -> None:
        for program in self._started:
            program.kill()

    def _next(self) -> tuple[str, str]:
        assert self._lines == [], f"not typed: {self._lines}"
        return self.left.pop(0)

    def _words(self, line: str, filled: dict[str, str]) -> list[str]:
        if not self._lines:
            kind, text = self._next()
            assert kind == "sh", text
            self._lines = text.splitlines()
        assert self._lines.pop(0) == line
        program, *words = [filled.get(word, word) for word in shlex.split(line)]
        return [".venv/bin/weft" if program == "weft" else program, *words]


@pytest.fixture
def newcomer(built: Path, tmp_path: Path) -> Iterator[Newcomer]:
    folder = tmp_path / "trips"
    folder.mkdir()
    found = Newcomer(folder)
    kind, install = found.left.pop(0)
    wheel = wheel_in(built)
    assert kind == "sh" and f"\n.venv/bin/pip install {wheel.name} pytest\n" in install
    installed(folder / ".venv", ["--no-compile", "-c", unhashed(tmp_path), str(wheel), "pytest"])
    yield found
    found.ends()


def run_of(text: str) -> str:
    found = re.search(r"\brun (\w{32})\b", text)
    assert found is not None, text
    return found[1]


def link_in(text: str) -> str:
    [link] = re.findall(r"http\S+/resume/\S+", text)
    return str(link)


def test_the_tutorial(newcomer: Newcomer) -> None:
    do = newcomer
    # 1 and 2
    do.saves()
    dev = do.starts("weft dev trip.py")
    dev.until("/sign-in")
    bergen = do.starts("""weft run trip --input '{"town": "Bergen", "price": 392.5}' --follow""")
    dev.until("reserve train")
    for line in do.reads().splitlines():
        bergen.until(line.split(maxsplit=2)[2])
    dev.kill()
    assert do.reads().strip() == KILL
    dev = do.starts("weft dev trip.py", again=True)
    dev.until("reserve hotel")
    dev.until("pay 392.5")
    assert "reserve train\n" not in dev.printed
    bergen.until('"paid 392.5 for Bergen"')
    assert bergen.ends() == 0

    # 3
    do.saves()
    dev.until("trip version 2 is active")
    bergen = do.starts("""weft run trip --input '{"town": "Bergen", "price": 392.5}' --follow""")
    link = link_in(bergen.until("Pay 392.5 each for Bergen? (approve, reject): http"))
    assert link == link_in(do.types("weft inbox"))
    do.types("weft answer LINK --action approve", LINK=link)
    bergen.until('"paid 392.5 for Bergen"')
    assert bergen.ends() == 0

    # 4
    oslo = do.types("""weft run trip --input '{"town": "Oslo", "price": 150}'""")
    assert "  page    http" in oslo
    dev.until("reserve hotel")
    do.types("weft cancel RUN", RUN=run_of(oslo))
    dev.until("release hotel to Oslo")
    dev.until("release train to Oslo")

    # 5
    do.saves()
    dev.until("[durable_clock]")
    found = do.types("weft validate trip.py")
    for line in do.reads().splitlines():
        assert line in found
    dev.until("trip version 3 is active")
    do.saves()
    dev.until("trip version 4 is active")

    # 6
    rome = do.types("""weft run trip --input '{"town": "Rome", "price": 90, "people": 0}' --follow""", code=1)
    assert "ZeroDivisionError" in rome
    seen = do.types("weft debug RUN", RUN=run_of(rome), input="p people, booked\nq\n")
    place, code, command, values = do.reads().splitlines()
    assert f"{place.removeprefix('> ')}\n{code}\n" in seen and command == "(Pdb) p people, booked"
    assert re.search(re.escape(values).replace("29\\ November", r"\d\d \w+"), seen)
    do.saves()
    dev.until("trip version 5 is active")
    do.types("weft fork RUN --at 8", RUN=run_of(rome))
    link = link_in(do.types_until("Pay 90 each for Rome?", "weft inbox"))
    assert "reserve train" not in "".join(dev.printed).partition("trip version 5")[2]

    # 7
    do.saves()
    parts = dev.until("does not fit this text")
    for part in do.reads().strip().removeprefix("run 01K… of ").removesuffix(" …").split(" trip.py:30: "):
        assert part in parts
    do.saves()
    dev.until("1 open run continues with this text.")
    do.types("weft answer LINK --action approve", LINK=link)
    dev.until("pay 90")
    do.types("""weft run trip --input '{"town": "Turku", "price": 80}'""")
    dev.until("reserve insurance")

    # 8
    do.saves()
    assert "2 passed" in do.types(".venv/bin/python -m pytest test_trip.py")
    do.is_at_the_end()

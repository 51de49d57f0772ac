"""docs/tutorial/in-python.md, followed as a newcomer would: its files, its commands, in its order, a kill included."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import free_port

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/tutorial/in-python.md").read_text()
COMMANDS = [
    line for text in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) for line in text.splitlines()
]
FILES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
INSTALL = [line for line in COMMANDS if line.startswith(("python3 -m venv", "alias")) or "WEFT" in line]


class Newcomer:
    """Types the commands of the page, one after another, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left = [line for line in COMMANDS if line not in INSTALL]
        own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        self.site = folder / "site"
        path = os.pathsep.join([str(self.site), str(ROOT), os.environ.get("PYTHONPATH", "")])
        more = {
            "WEFT_PORT": str(free_port(random.Random())),
            "WEFT_LEASE_MS": "1000",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": path,
        }
        self.environ = {**own, **more}
        self.dev: subprocess.Popen[str] | None = None

    def types(self, line: str, code: int = 0, **filled: str) -> str:
        """The next command of the page is `line`. What it prints."""
        assert self.left.pop(0) == line
        done = subprocess.run(
            self._words(line, filled), cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False,
            timeout=110,
        )  # fmt: skip
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def installs(self, line: str, package: str) -> None:
        """The next command does. Here into a folder of its own, and not in a way that follows later changes."""
        assert self.left.pop(0) == line and line.endswith(package)
        options = ["-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(self.site)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, f"./{package}"], cwd=self.folder, check=True)

    def starts(self, line: str) -> None:
        """A server that goes to the background; the page has it once, and says to start it again."""
        if line in self.left:
            assert self.left.pop(0) == line
        self.dev = subprocess.Popen(
            self._words(line, {}), cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert self.dev.stdout is not None
        for text in self.dev.stdout:
            if "/w/" in text or "canvas" in text.lower():
                return
        raise AssertionError(f"weft dev ended: {self.dev.wait()}")

    def kills(self) -> None:
        if self.dev is not None and self.dev.poll() is None:
            os.killpg(self.dev.pid, signal.SIGKILL)
            self.dev.wait()
            assert self.dev.stdout is not None
            self.dev.stdout.close()

    def _words(self, line: str, filled: dict[str, str]) -> list[str]:
        program, *words = [filled.get(word, word) for word in shlex.split(line)]
        return [sys.executable, *(["-m", "server"] if program == "weft" else []), *words]


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    for name, text in FILES.items():
        if "/" not in name:
            (tmp_path / name).write_text(f"# {name}\n{text}")
    found = Newcomer(tmp_path)
    yield found
    found.kills()


@pytest.mark.timeout(500)
def test_the_tutorial(newcomer: Newcomer) -> None:
    do = newcomer.types
    do("weft validate expenses.py")
    assert "pay" in do("weft plan expenses.py")
    newcomer.starts("weft dev expenses.py")
    do('weft run expenses --input \'{"trip": "Bergen"}\' --follow', code=3)
    newcomer.kills()
    newcomer.starts("weft dev expenses.py")
    [link] = re.findall(r"http\S+/resume/\S+", do("weft inbox"))
    do("weft answer LINK --action approve", LINK=link)
    run = ended(newcomer)
    assert "paid 392.5 for Bergen" in do("weft events RUN", RUN=run)
    assert "pay" in do("weft why RUN pay", RUN=run)
    assert "2 passed" in do(".venv/bin/python -m pytest test_expenses.py")
    assert do(".venv/bin/python start.py") == "succeeded paid 392.5 for Oslo\n"
    do("weft deploy reminder.py")
    do('weft run reminder --input \'{"who": "ada"}\'')
    assert "SendEmail(" in do("weft get reminder --python")
    do("weft new-block shout")
    assert (newcomer.folder / "shout" / "README.md").exists()
    (newcomer.folder / "shout/shout/block.py").write_text(FILES["shout/shout/block.py"])
    newcomer.installs(".venv/bin/pip install --no-deps --no-build-isolation -e shout", "shout")
    newcomer.kills()
    newcomer.starts("weft dev expenses.py")
    assert do('weft run louder.py --input \'{"text": "hello"}\' --follow').startswith('"HELLO!!!"\n')
    assert newcomer.left == []


def ended(newcomer: Newcomer) -> str:
    """The id of the run, when `weft runs` shows that it has succeeded: behind a kill its lease has to expire first."""
    line = "weft runs"
    for _ in range(200):
        shown = newcomer.types(line)
        found = re.search(r"^(\S+)\s.*succeeded", shown, re.MULTILINE)
        if found:
            return found[1]
        newcomer.left.insert(0, line)
        time.sleep(0.1)
    raise AssertionError(shown)

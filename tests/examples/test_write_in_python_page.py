"""What docs/howto/write-in-python.md shows works as it stands there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from executor.errors import NotFound
from executor.open.embed import open_engine
from tests.support.python_source import executed
from tests.support.runs import settled
from tests.support.server import SyncServerProcess

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/write-in-python.md").read_text()
FILES = {text.split("\n")[0].removeprefix("# "): text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)}
COMMANDS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def weft(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    return subprocess.run(
        [sys.executable, "-m", "server", *arguments],
        cwd=folder,
        env={**own, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_each_block_of_code_is_a_file() -> None:
    assert list(FILES) == ["orders.py", "demo.py", "ways.py", "repeat.py", "report.py", "graph.py", "program.py"]


@pytest.mark.parametrize("name", list(FILES))
def test_each_file_is_a_workflow_without_a_finding(folder: Path, name: str) -> None:
    checked = weft(folder, "validate", name)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout + checked.stderr
    assert checked.stderr.strip() == "0 errors, 0 warnings"


def test_the_program_runs(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ran.stdout == "succeeded Hello Ada\n", ran.stderr


async def test_the_ways_of_an_order(folder: Path) -> None:
    document = executed(FILES["orders.py"].replace("orders = Workflow(", "workflow = Workflow("))
    async with open_engine() as engine:
        small = await engine.run(document, {"amount": 12}, timeout_s=60)
        assert (small.status, small.output) == ("succeeded", {"ordered": 12, "by": "the rule"})
        large = await settled(engine, (await engine.submit(document, input={"amount": 120})).run)
        assert large.waits[0].request["title"] == "Order for 120 EUR?"
        assert large.waits[0].link is not None
        await engine.answer(large.waits[0].link, {}, action="reject", by="Ada")
        ended = await engine.wait_finished(large.id, 60)
        assert (
            ended.status == "succeeded"
            and [node.key for node in ended.nodes if node.status == "succeeded"][-1] == "send_email"
        )
        with pytest.raises(NotFound):
            await engine.workflows.get("orders")


def test_the_commands_work_as_they_stand_there(folder: Path) -> None:
    first, printed, promoted = ([line for line in block.splitlines() if line.startswith("weft ")] for block in COMMANDS)
    (folder / "here").mkdir()
    (folder / "there").mkdir()
    here = SyncServerProcess(folder / "here", {"WEFT_TOKEN": "token-of-the-first-server"})
    try:
        there = SyncServerProcess(folder / "there", {"WEFT_TOKEN": "token-of-the-second-server"})
        try:
            own = {"WEFT_URL": here.url, "WEFT_TOKEN": "token-of-the-first-server"}
            own["WEFT_TO_TOKEN"] = "token-of-the-second-server"
            said = []
            for line in [*first, *printed, *promoted]:
                ran = weft(folder, *shlex.split(line.replace("https://weft.example.com", there.url))[1:], **own)
                assert ran.returncode == 0, f"{line}: {ran.stderr}"
                said.append(ran.stdout)
            one_of_a_file = weft(folder, "run", "report.py:report", "--follow", **own)
        finally:
            there.kill()
    finally:
        here.kill()
    assert json.loads(one_of_a_file.stdout) == "the report"
    assert said[1].startswith("orders version 1 (new, ")
    assert json.loads(said[2]) == {"ordered": 12, "by": "the rule"}
    assert said[4].startswith("orders version 1 (unchanged, ")
    assert said[5].startswith("orders version 1 is version 1 at ")

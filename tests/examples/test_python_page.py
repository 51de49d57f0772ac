"""What docs/howto/use-python.md shows works as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.handler.base import context
from executor.open.embed import open_engine

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/use-python.md").read_text()


def block(beginning: str) -> str:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (found,) = [text for text in blocks if text.startswith(beginning)]
    return found


def test_the_program_runs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(block("import asyncio"))
    ran = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    first, *events = ran.stdout.splitlines()
    assert first == "succeeded {'item': 'tea', 'price': 3}"
    assert events[-1].split() == ["6", "run.finished"]
    assert (tmp_path / "offers.db").exists()


def test_a_program_without_asyncio(tmp_path: Path) -> None:
    program = tmp_path / "blocking.py"
    program.write_text(block("# blocking.py"))
    ran = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("succeeded sent 7", "8 run.finished")


def test_functions_are_known_to_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(block("# shop.py"))
    flow = tmp_path / "flow.json"
    (line,) = re.findall(r'^"quote": (\{.*\})$', PAGE, re.MULTILINE)
    flow.write_text(
        f'{{"format": "weft/1", "blocks": {{"start": {{"type": "start"}}, "quote": {line}}},'
        ' "edges": [{"source": "start", "target": "quote"}]}'
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "WEFT_FUNCTIONS": "shop:quote"}

    def weft(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "server", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env={**env, **more}, capture_output=True, text=True, check=False, timeout=100
        )

    assert weft("validate", str(flow)).returncode == 0
    assert "block_type_unknown" in weft("validate", str(flow), WEFT_FUNCTIONS="").stdout
    wrong = weft("validate", str(flow), WEFT_FUNCTIONS="shop:nope")
    assert (wrong.returncode, "no attribute 'nope'" in wrong.stderr) == (4, True)
    refused = weft("serve", "--port", "0", "--db", str(tmp_path / "weft.db"), WEFT_FUNCTIONS="shop:nope")
    assert (refused.returncode, "WEFT_FUNCTIONS: shop:nope" in refused.stderr) == (2, True)


async def test_what_the_page_lists_of_an_engine_is_there() -> None:
    rows = re.findall(r"(?m)^\| (`engine\..*?) \| (.*) \|$", PAGE)
    assert len(rows) >= 8
    async with open_engine() as engine:
        for topics, cell in rows:
            names = re.findall(r"`(\w+)`", cell)
            for topic in re.findall(r"`engine\.(\w+)`", topics):
                assert [name for name in names if not callable(getattr(getattr(engine, topic), name, None))] == [], (
                    topic
                )
        assert callable(engine.store.clear_cache)


async def test_the_import_continues_where_it_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(compile(block("# mails.py"), "mails.py", "exec"), names)
    (params,) = re.findall(r'^("import": \{.*?\}\})$', PAGE, re.DOTALL | re.MULTILINE)
    imports = json.loads(f"{{{params}}}")["import"]
    imports["policy"]["retry"] = {"max_attempts": 2, "initial_ms": 1}
    flow = {
        "format": "weft/1",
        "name": "mails",
        "blocks": {"start": {"type": "start"}, "import": imports},
        "edges": [{"source": "start", "target": "import"}],
    }

    async def import_mails(files: list[str]) -> int:
        if context().attempt == 2:
            return int(await names["import_mails"](files))
        await names["import_mails"](files[:2])
        raise ValueError("the third cannot be read")

    async with open_engine(functions={"import_mails": import_mails}) as engine:
        run = await engine.run(flow, {"files": ["a", "b", "c", "d"]}, timeout_s=60)
        assert (run.status, run.output) == ("succeeded", 4)
    assert capsys.readouterr().out.split() == ["importing", "a", "importing", "b", "importing", "c", "importing", "d"]

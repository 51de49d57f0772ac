"""docs/howto/agents-in-python.md: its files run unchanged, but for the address of the model."""

from __future__ import annotations

import os
import re
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from pathlib import Path

import pytest

from tests.support.dev_model import dev_model

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/agents-in-python.md").read_text()
OLLAMA = "http://127.0.0.1:11434/v1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the files of the page."""
    blocks: list[tuple[str, str]] = re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for name, text in blocks:
        (tmp_path / name).write_text(f"# {name}\n{text}")
    return tmp_path


async def run(folder: Path, *command: str) -> str:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    environ = {**own, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    process = await create_subprocess_exec(sys.executable, *command, cwd=folder, env=environ, stdout=PIPE, stderr=PIPE)
    out, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    return out.decode()


async def test_the_program_calls_the_function(folder: Path) -> None:
    searching = {"when": {"tool": ""}, "calls": [{"name": "search", "arguments": {"query": "lanes", "most": 1}}]}
    async with dev_model(searching, {"text": "Read {{tool}}"}) as model:
        main = folder / "main.py"
        main.write_text(main.read_text().replace(OLLAMA, model.url))
        printed = await run(folder, "main.py")
    assert printed.startswith("succeeded {'content': 'Read [\"lanes, part 0\"]'"), printed


async def test_the_file_has_no_findings(folder: Path) -> None:
    await run(folder, "-m", "server", "validate", "research.py:flow")


@pytest.mark.proof
@pytest.mark.timeout(200)
async def test_its_tests_pass(folder: Path) -> None:
    printed = await run(folder, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "test_report.py")
    assert "2 passed" in printed, printed

"""docs/howto/steps-as-functions.md: its files run as they stand there, and say what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/steps-as-functions.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the files of the page."""
    blocks: list[tuple[str, str]] = re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for name, text in blocks:
        (tmp_path / name).write_text(f"# {name}\n{text}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flow.py", "main.py"]
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    environ = {**own, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "WEFT_FUNCTIONS": ""}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_program_runs(folder: Path) -> None:
    assert run(folder, "main.py").stdout == "succeeded paid 3.15 for A-17\n"


def test_the_workflow_has_no_findings_and_the_step_is_a_function(folder: Path) -> None:
    code = (
        "import json, flow, compiler.compile as c\n"
        "from executor.blocks.types import python as p, registry as r\n"
        "found = c.compile_document(flow.order.document(), r.Registry.load([p.Python(flow.order.steps)])).diagnostics\n"
        "print(json.dumps([flow.total.function([1, 2]), [str(one) for one in found], sorted(flow.order.steps)]))\n"
    )
    done = run(folder, "-c", code)
    assert json.loads(done.stdout) == [3, [], ["flow.discounted", "flow.load", "flow.pay", "flow.total"]], done.stderr


def test_the_refusal_is_the_one_that_the_page_shows(folder: Path) -> None:
    shown = re.search(r"^```text\nflow.py, line \d+: (.*?), …\n```", PAGE, re.DOTALL | re.MULTILINE)
    assert shown is not None
    text = (folder / "flow.py").read_text()
    (folder / "wrong.py").write_text(
        text.replace(
            "    return await weft.when(answer", "    if answer:\n        pass\n    return await weft.when(answer"
        )
    )
    done = run(folder, "-c", "import wrong; wrong.order.document()")
    assert f"wrong.py, line {text.splitlines().index('@weft.workflow') + 12}: {shown[1]}" in done.stderr

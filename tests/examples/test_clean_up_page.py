"""The Python of docs/howto/clean-up.md makes what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from compiler.compile import compile_document
from executor.blocks.types.python import load_module
from executor.blocks.types.registry import Registry
from tests.support.python_source import canonical, executed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/clean-up.md").read_text()
FILES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))


def test_the_workflow_in_python_is_the_document_above_it() -> None:
    [text] = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    made = executed(FILES["session.py"].replace("session = Workflow(", "workflow = Workflow("))
    assert canonical(made) == canonical(json.loads(text))


def test_the_function_cleans_up_although_it_fails(tmp_path: Path) -> None:
    (tmp_path / "lease.py").write_text(FILES["lease.py"])
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    done = subprocess.run(
        [sys.executable, "lease.py"], cwd=tmp_path, env={**environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gave back gpu-1\nfailed "), done.stdout
    assert "there is nothing to learn from" in done.stdout


def test_what_a_cancel_undoes_is_sound(tmp_path: Path) -> None:
    file = tmp_path / "weft_test_order.py"
    file.write_text(FILES["order.py"])
    order = load_module(str(file)).order
    result = compile_document(order.document(), Registry.load())
    assert {found.code for found in result.diagnostics} <= {"case_unwired", "block_type_unknown"}

"""What `weft dev` finds in a file, and what it says of one that it cannot use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import ROOT

STEP = "import weft\n@weft.step\ndef one(n: int) -> int:\n    return n\n"


def check(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    file = folder / "weft_test_flow.py"
    file.write_text(text)
    command = [sys.executable, "-m", "server.dev.check", str(file)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_it_prints_the_documents_whatever_the_file_prints(tmp_path: Path) -> None:
    flows = (
        "@weft.workflow\nasync def flow(n: int):\n    return await one(n)\nclassic = draw.Workflow('b', draw.Set(1))\n"
    )
    text = f"print('hello')\nfrom weft import draw\n{STEP}{flows}"
    done = check(tmp_path, text)
    found = json.loads(done.stdout)
    assert (sorted(found["documents"]), found["steps"]) == (["b", "flow"], True)
    assert found["documents"]["flow"]["blocks"]["one"]["params"]["function"] == "weft_test_flow.one"
    assert "hello" in done.stderr


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def workflow():\n    return draw.Sequence(draw.Set(1))\n", ["weft_test_flow"]),
        ("flow = draw.Workflow(None, draw.Set(1))\n", ["weft_test_flow"]),
        (
            "flow = draw.Workflow('a', draw.Set(1))\nalso = flow\n_own = draw.Workflow('b', draw.Set(1))\n",
            ["a"],
        ),
    ],
)
def test_it_finds_what_weft_deploy_finds(text: str, names: list[str], tmp_path: Path) -> None:
    done = check(tmp_path, f"from weft import draw\n{text}")
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["documents"]) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STEP, "has no workflow"),
        ("import weft\nweft.nope\n", "line 2"),
        (
            f"{STEP}@weft.workflow\nasync def flow(n: int):\n    return await one(n + 1)\n",
            "line 7: a traced value cannot be computed",
        ),
        (
            f"{STEP}@weft.workflow(name='a')\nasync def b():\n    await one(1)\n"
            "@weft.workflow(name='a')\nasync def c():\n    await one(1)\n",
            "the name 'a'",
        ),
        ("from weft import draw\nflow = draw.Workflow('b', draw.Http(' '))\n", "b has errors:"),
    ],
)
def test_it_says_what_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    done = check(tmp_path, text)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


def test_it_warns_of_what_differs_in_a_durable_function(tmp_path: Path) -> None:
    flow = "import time\nimport weft\n@weft.durable\nasync def flow() -> float:\n    return time.time()\n"
    done = check(tmp_path, flow)
    assert done.returncode == 0
    assert re.search(r"weft_test_flow\.py:5: flow: `time\.time\(\)` .*\[durable_clock\]\n    Use weft", done.stderr)

"""docs/howto/connectors.md: the package of the page as an installed wheel, and its tests as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import ROOT

PAGE = (ROOT / "docs/howto/connectors.md").read_text()
FLOW = {
    "format": "weft/1",
    "blocks": {
        "start": {"type": "start"},
        "buy": {
            "type": "connector.tea",
            "params": {"operation": "order", "credential": "${TOKEN}", "shop": "a", "boxes": 1},
        },
    },
    "edges": [{"source": "start", "target": "buy"}],
}


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")} | env
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=100
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The files of the page, in their folder."""
    folder = tmp_path / "weft-tea"
    (folder / "weft_tea").mkdir(parents=True)
    for name, text in re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        (folder / name).write_text(text)
    [document] = [
        each for each in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if "format" in each
    ]
    (folder / "weft_tea" / "tea.json").write_text(document)
    (folder / "weft_tea" / "__init__.py").touch()
    return folder


def test_its_tests_pass_without_a_network(package: Path) -> None:
    tested = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_tea.py", cwd=package, PYTHONPATH=str(ROOT))
    assert tested.returncode == 0 and "2 passed" in tested.stdout, tested.stdout


def test_its_wheel_brings_the_block_type(package: Path, tmp_path: Path) -> None:
    built = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=package)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("weft_tea-*.whl")
    site = tmp_path / "site"
    done = run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    flow = tmp_path / "flow.json"
    flow.write_text(json.dumps(FLOW))
    path = os.pathsep.join([str(site), str(ROOT)])
    found = run("-m", "server", "validate", str(flow), cwd=tmp_path, PYTHONPATH=path, WEFT_ENV_TOKEN="t-12345678")
    assert found.returncode == 0, found.stdout + found.stderr
    without = run("-m", "server", "validate", str(flow), cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert "block_type_unknown" in without.stdout + without.stderr

"""The interface's own tests and types, as `npm test` and `npm run check` run them, with whatever Node there is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from compiler.document import SettingsDoc
from executor.kernel.core.events import Event
from tests.support.node import find_node

WEB = Path(__file__).parents[2] / "web"
# In one worker: both want the same Node, which is fetched where there is none.
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("web")]


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with what the interface is built from installed."""
    node, npm = find_node()
    if not (WEB / "node_modules" / "vite").is_dir():
        run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], node)
    return node


@pytest.mark.parametrize("project", ["tsconfig.json", "tsconfig.test.json"])
def test_types(node: str, project: str) -> None:
    run([node, "node_modules/typescript/bin/tsc", "-p", project], node)


def test_the_editor_listens_to_every_type_of_event() -> None:
    """A browser hears only the named events that it asks for."""
    listed = (WEB / "src/api/schemas.ts").read_text().partition("EVENT_TYPES = [")[2].partition("]")[0]
    assert set(re.findall(r"'([\w.]+)'", listed)) == {str(cls.__struct_config__.tag) for cls in get_args(Event)}


def test_the_panel_of_a_workflow_has_every_setting() -> None:
    listed = (WEB / "src/edit/inspector/settings.ts").read_text().partition("SETTINGS")[2]
    assert set(re.findall(r"^  (\w+): \{", listed, re.MULTILINE)) == set(SettingsDoc.__struct_fields__)


def test_units(node: str) -> None:
    out = run([node, "test/run.mjs"], node)
    assert "fail 0" in out and "pass 0" not in out, out[-3000:]


def run(command: list[str], node: str) -> str:
    path = os.pathsep.join((str(Path(node).parent), os.environ.get("PATH", "")))
    done = subprocess.run(
        command, cwd=WEB, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout

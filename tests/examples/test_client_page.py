"""What docs/howto/use-the-client.md shows works as it stands there, against a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.conftest import clean_environment
from tests.support.node import find_node
from tests.support.server import SyncServerProcess

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/use-the-client.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(TYPESCRIPT,) = re.findall(r"```ts\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    """With the workflow of the first program."""
    server = SyncServerProcess(tmp_path_factory.mktemp("server"), {})
    try:
        assert ran(PYTHON[0], server, server.folder) == ["Pay 120? ['approve', 'reject']", "succeeded approve"]
        yield server
    finally:
        server.kill()


def ran(program: str, server: SyncServerProcess, folder: Path) -> list[str]:
    path = folder / "program.py"
    path.write_text(program)
    return printed([sys.executable, str(path)], server, folder)


def printed(command: list[str], server: SyncServerProcess, folder: Path) -> list[str]:
    env = {**clean_environment(), "WEFT_URL": server.url}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_following(server: SyncServerProcess, tmp_path: Path) -> None:
    lines = [line.split() for line in ran(PYTHON[1], server, tmp_path)]
    assert [line[0] for line in lines] == [str(n) for n in range(1, len(lines) + 1)]
    assert lines[0][1] == "run.started" and lines[-1][1] == "run.finished"
    assert ["wait.opened", "ask"] in [line[1:] for line in lines]


def test_files(server: SyncServerProcess, tmp_path: Path) -> None:
    assert ran(PYTHON[2], server, tmp_path) == ["sales.csv 17 True"]


def test_errors_and_repeated_requests(server: SyncServerProcess, tmp_path: Path) -> None:
    assert ran(PYTHON[3], server, tmp_path) == ["404 workflow_not_found", "True False"]


def test_no_other_program_is_on_the_page() -> None:
    assert len(PYTHON) == 4


@pytest.mark.xdist_group("web")
@pytest.mark.timeout(600)
def test_typescript(server: SyncServerProcess, tmp_path: Path) -> None:
    """Built and installed as npm does it: the package and the program side by side."""
    node, npm = find_node()
    web = ROOT / "web"
    if not (web / "node_modules" / "typescript").is_dir():
        subprocess.run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=web, check=True)
    package = tmp_path / "node_modules" / "weft-client"
    package.mkdir(parents=True)
    (package / "package.json").write_text((web / "client" / "package.json").read_text())
    tsc = [node, str(web / "node_modules/typescript/bin/tsc")]
    subprocess.run([*tsc, "-p", str(web / "client"), "--outDir", f"{package}/dist"], check=True, timeout=200)
    (tmp_path / "program.mts").write_text(TYPESCRIPT)
    options = ["--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom", "--types", "", "--strict"]
    assert printed([*tsc, *options, "program.mts"], server, tmp_path) == []
    lines = printed([node, "program.mjs"], server, tmp_path)
    assert lines[0] == "1 run.started" and lines[-3].endswith("run.finished")
    assert lines[-2:] == ["[ 'payment' ]", "404 run_not_found"]

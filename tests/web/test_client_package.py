"""The TypeScript client in web/client: built as it is published, and used against a real server that is killed."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.support.node import find_node
from tests.support.server import ServerProcess, free_port
from tests.web.operations import OUT, module

WEB = Path(__file__).parents[2] / "web"
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("web")]


def test_the_stored_routes_are_those_of_the_server_now() -> None:
    assert OUT.read_text(encoding="utf-8") == module(), "run `npm --prefix web run types`"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the package begins with, built."""
    node, npm = find_node()
    if not (WEB / "node_modules" / "typescript").is_dir():
        subprocess.run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=WEB, check=True)
    out = tmp_path_factory.mktemp("client")
    command = [node, "node_modules/typescript/bin/tsc", "-p", "client", "--outDir", str(out)]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (out / "package.json").write_text('{"type": "module"}')
    return out / "client" / "src" / "index.js"


async def test_the_package_against_a_real_server(package: Path, tmp_path: Path) -> None:
    node, _ = find_node()
    port, db, log = free_port(random.Random()), tmp_path / "weft.db", tmp_path / "log"
    server = await ServerProcess.start(db, port, log)
    restarts = 0
    try:
        await server.ready()
        tests = await asyncio.create_subprocess_exec(
            node,
            "--test-reporter=spec",
            str(WEB / "client" / "test" / "live.mjs"),
            env={**_plain(), "WEFT_URL": server.url, "WEFT_CLIENT": str(package)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert tests.stdout is not None
        said = ""
        async with asyncio.timeout(300):
            async for line in tests.stdout:
                said += line.decode()
                if line.strip() == b"restart":
                    await server.kill()
                    server = await ServerProcess.start(db, port, log)
                    await server.ready()
                    restarts += 1
            await tests.wait()
        assert tests.returncode == 0 and restarts == 1, said
        assert "pass 6" in said, said
    finally:
        await server.clean_up()


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}

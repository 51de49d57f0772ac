"""The TypeScript client in web/client: built as it is published, and used against a real server that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.node import find_node
from tests.support.server import ServerProcess, free_port
from tests.web.operations import OUT, module

WEB = Path(__file__).parents[2] / "web"
MANUAL = {"LICENSE", "README.md", "package.json"}
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("web")]


def test_the_stored_routes_are_those_of_the_server_now() -> None:
    assert OUT.read_text(encoding="utf-8") == module(), "run `npm --prefix web run types`"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder, built as `npm pack` builds it, and not in the checkout."""
    node, npm = find_node()
    if not (WEB / "node_modules" / "typescript").is_dir():
        subprocess.run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=WEB, check=True)
    out = tmp_path_factory.mktemp("client")
    command = [node, "node_modules/typescript/bin/tsc", "-p", "client", "--outDir", str(out / "dist")]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in MANUAL:
        shutil.copy(WEB / "client" / name, out)
    return out


@pytest.fixture(scope="module")
def index(package: Path) -> Path:
    """The file that the package begins with."""
    described = json.loads((package / "package.json").read_text())
    return package / str(described["exports"]["."]["default"])


def test_what_is_published_is_all_that_a_program_needs(package: Path, tmp_path: Path) -> None:
    """`npm pack`, unpacked where npm installs it: the program in its README type-checks, and nothing else is in it."""
    node, npm = find_node()
    pack = [*npm, "pack", "--ignore-scripts", "--offline", "--pack-destination", str(tmp_path)]
    subprocess.run(pack, cwd=package, capture_output=True, check=True, timeout=100)
    with tarfile.open(next(tmp_path.glob("weft-client-*.tgz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    installed = tmp_path / "node_modules" / "weft-client"
    installed.parent.mkdir()
    (tmp_path / "package").rename(installed)

    files = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    assert {name.partition("/")[0] for name in files} == {*MANUAL, "dist"}
    assert {name for name in files if not name.endswith((".js", ".d.ts"))} == MANUAL
    assert {name.removesuffix(".d.ts") for name in files if name.endswith(".d.ts")} == {
        name.removesuffix(".js") for name in files if name.endswith(".js")
    }

    assert (installed / "LICENSE").read_bytes() == (WEB.parent / "LICENSE").read_bytes()
    [program] = re.findall(r"```ts\n(.*?)```", (installed / "README.md").read_text(), re.DOTALL)
    (tmp_path / "program.ts").write_text(f"declare const process: {{ env: Record<string, string> }}\n{program}")
    (tmp_path / "wrong.ts").write_text("import { Weft } from 'weft-client'\nnew Weft({ url: 7 })\n")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = ["--noEmit", "--strict", "--target", "ES2022", "--module", "NodeNext", "--lib", "ES2023,DOM,DOM.Iterable"]
    command = [node, str(WEB / "node_modules/typescript/bin/tsc"), *options, "--types", "", "program.ts", "wrong.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert re.findall(r"^(\S+)\(\d+,\d+\): error (\w+)", done.stdout, re.MULTILINE) == [("wrong.ts", "TS2322")], (
        done.stdout
    )


async def test_the_package_against_a_real_server(index: Path, tmp_path: Path) -> None:
    node, _ = find_node()
    port, db, log = free_port(random.Random()), tmp_path / "weft.db", tmp_path / "log"
    server = await ServerProcess.start(db, port, log, command=("serve", "--dev-model"))
    restarts = 0
    try:
        await server.ready()
        tests = await asyncio.create_subprocess_exec(
            node,
            "--test-reporter=spec",
            str(WEB / "client" / "test" / "live.mjs"),
            env={**_plain(), "WEFT_URL": server.url, "WEFT_CLIENT": str(index)},
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
                    server = await ServerProcess.start(db, port, log, command=("serve", "--dev-model"))
                    await server.ready()
                    restarts += 1
            await tests.wait()
        assert tests.returncode == 0 and restarts == 1, said
        assert "pass 7" in said, said
    finally:
        await server.clean_up()


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}

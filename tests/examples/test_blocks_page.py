"""docs/howto/write-a-block.md and test-your-workflows.md, as they stand there; `weft new-block` and its package."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.endpoints import Request, answer, http
from weft import testing

ROOT = Path(__file__).parents[2]


def blocks_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/howto" / page).read_text(), re.DOTALL)


def module(tmp_path: Path, name: str, *texts: str) -> Any:
    path = tmp_path / f"{name}.py"
    path.write_text("\n\n".join(texts))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


async def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    shop, resize, rows = blocks_of("write-a-block.md")

    async def handle(request: Request) -> bytes:
        assert request.headers["authorization"] == "Bearer k"
        return answer(200, b'{"amount": 2.5}')

    async with http(handle) as server:
        params = {"item": "tea", "amount": 2, "key": "k", "url": f"{server.url}/prices"}
        fetch = module(tmp_path, "weft_page_shop", shop).fetch_price
        ran = await testing.run_block(fetch, params, allow_private=[server.place])
    assert ran.output == {"amount": 5.0, "currency": "EUR"}
    assert (await testing.run_block(module(tmp_path, "weft_page_resize", resize).resize, {"width": 10})).output == 5
    made = module(tmp_path, "weft_page_rows", rows).import_rows
    assert (await testing.run_block(made, {"rows": ["a", "b"]})).output == 2


@pytest.mark.timeout(300)
async def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    made = module(tmp_path, "weft_page_flow", *blocks_of("test-your-workflows.md"))
    tests = [test for name, test in vars(made).items() if name.startswith("test_")]
    assert len(tests) >= 5
    for test in tests:
        await test()


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **env}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=200
    )


@pytest.mark.timeout(300)
def test_a_new_package_passes_its_own_tests_and_its_block_is_found(tmp_path: Path) -> None:
    made = run("-m", "server", "new-block", "fetch_price", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert made.returncode == 0, made.stderr
    package = tmp_path / "fetch_price"
    assert not any("word_count" in path.read_text() for path in package.rglob("*") if path.is_file())
    again = run("-m", "server", "new-block", "fetch_price", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert again.returncode == 4 and "is not empty" in again.stderr
    wrong = run("-m", "server", "new-block", "Fetch-Price", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert wrong.returncode == 4 and "cannot be the name" in wrong.stderr
    site = tmp_path / "site"
    install = ("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site))
    installed = run(*install, str(package), cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    path = os.pathsep.join([str(site), str(ROOT)])
    tested = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=package, PYTHONPATH=path)
    assert tested.returncode == 0, tested.stdout
    flow = tmp_path / "flow.json"
    text = (package / "tests" / "test_fetch_price.py").read_text()
    scope: dict[str, Any] = {}
    exec(re.search(r"WORKFLOW = \{.*?^\}", text, re.DOTALL | re.MULTILINE)[0], scope)  # type: ignore[index]
    flow.write_text(json.dumps(scope["WORKFLOW"]))
    assert run("-m", "server", "validate", str(flow), cwd=tmp_path, PYTHONPATH=path).returncode == 0
    missing = run("-m", "server", "validate", str(flow), cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert "block_type_unknown" in missing.stdout

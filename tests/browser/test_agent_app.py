"""examples/agent_app in a browser, with a scripted model. It is killed while a person is asked."""

from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.support.server import free_port

ROOT = Path(__file__).parents[2]
APP = ROOT / "examples/agent_app/app.py"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


SCRIPT = {
    "rules": [
        {"when": {"tool": ""}, "text": "I look it up.", "calls": [call("search", query="lanes")], "pause_ms": 20},
        {"when": {"tool": "search"}, "calls": [call("publish", text="All about lanes")]},
        {"text": "It is out: {{tool}}.", "pause_ms": 20},
    ]
}


@contextmanager
def process(*command: str, folder: Path, **environ: str) -> Iterator[subprocess.Popen[str]]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**own, "PYTHONPATH": str(ROOT), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    """The address of the model."""
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    command = ("server", "dev-model", "--port", "0", "--script", "script.json")
    with process(*command, folder=tmp_path) as started:
        assert started.stdout is not None
        yield started.stdout.readline().removeprefix("dev-model: ").strip()


def test_the_page_shows_the_agent_and_goes_on_after_a_kill(browser: Browser, model: str, tmp_path: Path) -> None:
    port = free_port(random.Random())
    url, serving = f"http://127.0.0.1:{port}", ("uvicorn", "app:app", "--app-dir", str(APP.parent), "--port", str(port))
    page = browser.new_context().new_page()
    with process(*serving, folder=tmp_path, MODEL_URL=model) as app:
        _until_up(url)
        page.goto(url)
        page.get_by_role("button", name="Ask").click()
        log = page.get_by_role("log")
        expect(log).to_contain_text("I look it up.", timeout=30_000)
        expect(log).to_contain_text('search {"query":"lanes"}')
        expect(log).to_contain_text('Call publish? {"text":"All about lanes"}')
        app.kill()
    with process(*serving, folder=tmp_path, MODEL_URL=model):
        _until_up(url)
        page.get_by_role("button", name="approve").click()
        expect(log).to_contain_text("It is out: published 15 letters.", timeout=30_000)
        expect(log).to_contain_text("succeeded")
        expect(page.get_by_role("button", name="approve")).to_have_count(0)
        page.reload()
        expect(log).to_contain_text('= "published 15 letters"')
        expect(log).to_contain_text("It is out: published 15 letters.")
    page.context.close()


def test_it_is_as_short_as_that_of_others() -> None:
    """41 lines is the same app on LangGraph."""
    text = APP.read_text()
    ast.parse(text)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 41


def _until_up(url: str) -> None:
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        try:
            httpx.get(url, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(url)

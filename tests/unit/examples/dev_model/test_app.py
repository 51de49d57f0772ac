"""The server of the scripted model: what it refuses, what it keeps, and the command that starts it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import httpx
from click.testing import CliRunner

from server.cli.processes import dev_model as command
from tests.support.dev_model import dev_model


async def test_requests_that_are_none() -> None:
    async with dev_model() as server, httpx.AsyncClient(trust_env=False) as client:
        for body in (b"", b"[]", b"{}", b'{"model": "m", "messages": [{"role": "tool", "tool_call_id": "x"}]}'):
            answer = await client.post(f"{server.url}/chat/completions", content=body)
            assert answer.status_code == 400 and "no request" in answer.json()["error"]["message"]
        lost = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]}
        answer = await client.post(f"{server.url}/messages", json={"model": "m", "messages": [lost]})
        assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
        assert await server.calls() == []


def test_the_command(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"rules": [{"text": "Scripted."}]}')
    arguments = [sys.executable, "-m", "server", "dev-model", "--port", "0", "--script", str(script)]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("dev-model: http://127.0.0.1:") and "WEFT_MODEL_DEV=" in process.stdout.readline()
        url = line.removeprefix("dev-model: ").strip()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{url}/chat/completions", body, timeout=30) as answer:
            assert json.load(answer)["choices"][0]["message"]["content"] == "Scripted."
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_script_that_cannot_be_used(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    for text in ("{", '{"rules": [{"typo": 1}]}'):
        script.write_text(text)
        result = CliRunner().invoke(command, ["--script", str(script)])
        assert result.exit_code != 0 and str(script) in result.output
    assert CliRunner().invoke(command, ["--script", str(tmp_path / "none.json")]).exit_code != 0

"""The command of the operator that knows secrets, as a real process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from executor.blocks.vault.command import External, SecretsCommand
from executor.errors import BlockError

PROGRAM = """
import json, os, sys, time
print("canary on stderr", file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    names = asked["names"]
    if "DIE" in names:
        sys.exit(3)
    if "HANG" in names:
        time.sleep(600)
    if "NOISE" in names:
        print("canary-4711 is no JSON", flush=True)
        continue
    known = {"PID": str(os.getpid()), "OWN": os.environ.get("WEFT_TOKEN", "none"), "KEY": "value of key"}
    found = {name: {"value": known[name], "hosts": ["a.example"]} for name in names if name in known}
    print(json.dumps({"id": asked["id"], "secrets": found}), flush=True)
"""


async def test_one_process_answers_and_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TOKEN", "token of the server")
    program = tmp_path / "vault.py"
    program.write_text(PROGRAM)
    command = SecretsCommand([sys.executable, str(program)])
    try:
        assert await command.get(["KEY", "OTHER"]) == {"KEY": External("value of key", ("a.example",))}
        assert (await command.get(["OWN"]))["OWN"].value == "none"
        first = await command.get(["PID"])
        assert await command.get(["PID"]) == first
        for name in ("DIE", "NOISE"):
            with pytest.raises(BlockError) as caught:
                await command.get([name])
            assert caught.value.code == "secrets_command_failed" and caught.value.retryable
            assert "canary" not in caught.value.message
            second = await command.get(["PID"])
            assert second != first
            first = second
    finally:
        await command.close()


async def test_one_that_does_not_answer_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "vault.py"
    program.write_text(PROGRAM)
    command = SecretsCommand([sys.executable, str(program)], answer_s=0.3)
    with pytest.raises(BlockError, match="did not answer"):
        await command.get(["HANG"])
    await command.close()
    with pytest.raises(BlockError, match="cannot be started"):
        await SecretsCommand([str(tmp_path / "none")]).get(["KEY"])

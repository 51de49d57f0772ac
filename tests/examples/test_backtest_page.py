"""The commands of "Against its own runs" in docs/howto/test-your-workflows.md, against a server with runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import httpx
import pytest

from tests.examples.conftest import Weft
from tests.support.command import Ran
from tests.support.command import weft as command

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/howto/test-your-workflows.md").read_text().partition("## Against its own runs")[2]
SECTION = SECTION.partition("\n## ")[0]
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL) for line in block.splitlines()]
ORDERS = {
    "format": "weft/1",
    "name": "orders",
    "blocks": {
        "start": {"type": "start"},
        "limit": {
            "type": "condition",
            "params": {"cases": [{"id": "high", "when": "<start.total> > 500"}, {"id": "low"}]},
        },
        "ask": {"type": "set", "name": "Ask", "params": {"value": "ask"}},
        "charge": {"type": "set", "name": "Charge", "params": {"value": "charge"}},
    },
    "edges": [
        {"source": "start", "target": "limit"},
        {"source": "limit", "handle": "high", "target": "ask"},
        {"source": "limit", "handle": "low", "target": "charge"},
    ],
}


@pytest.fixture
def runs(weft: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    httpx.post(f"{weft.url}/api/workflows", json={"document": ORDERS}).raise_for_status()
    address = f"{weft.url}/api/workflows/orders/runs?wait=60"
    made = [httpx.post(address, json={"input": {"total": total}}).json()["run"] for total in (450, 100)]
    Path("orders.json").write_text(json.dumps(ORDERS).replace("> 500", "> 400"))
    return made


def ran(weft: Weft, line: str) -> Ran:
    program, *arguments = shlex.split(line)
    assert program == "weft"
    return command(*arguments, environ={"WEFT_URL": weft.url})


def test_the_commands_and_their_exit_codes(weft: Weft, runs: list[str]) -> None:
    last, keep, kept, of_kept, drop = COMMANDS
    differs = ran(weft, last)
    assert differs.returncode == 1
    assert differs.stdout.splitlines()[:2] == [
        f"another way   {runs[0]} version 1",
        "    limit: Charge -> Ask",
    ]
    assert differs.stdout.splitlines()[-1] == "2 runs: 1 same, 1 another way."
    assert ran(weft, of_kept).returncode == 4, "there is nothing to test"
    assert ran(weft, keep.replace("RUN", runs[1])).returncode == 0
    assert ran(weft, kept).stdout == f"{runs[1]}  an order above the limit\n"
    same = ran(weft, of_kept)
    assert (same.returncode, same.stdout) == (0, "1 run: 1 same.\n")
    assert ran(weft, keep.replace("RUN", runs[0])).returncode == 0
    assert ran(weft, of_kept).returncode == 1
    for run in runs:
        assert ran(weft, drop.replace("RUN", run)).returncode == 0
    assert ran(weft, kept).stdout == ""


def test_the_step_of_the_ci_is_a_command_of_the_page() -> None:
    (source,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)
    assert source.splitlines()[0].removeprefix("- run: ") in COMMANDS
    assert re.findall(r"^    (\w+): ", source, re.MULTILINE) == ["WEFT_URL", "WEFT_TOKEN"]

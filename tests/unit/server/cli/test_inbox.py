"""The commands for waits and signals, against a server in this process."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from server import cli


async def test_the_inbox_and_a_withdrawn_question(
    weft: Callable[..., Any], started: Callable[..., Any], asking: dict[str, Any]
) -> None:
    run = (await started(asking))["run"]
    shown = await weft("inbox")
    head, row, link = click.unstyle(shown.stdout).splitlines()
    assert head.split() == ["AGE", "KIND", "WORKFLOW", "NODE", "QUESTION"]
    assert row.split("  ")[1] == "approval" and "Ask: Pay <b>now</b>?  [approve, reject]" in row
    assert "/resume/" in link
    (as_json,) = json.loads((await weft("inbox", "--json", "--workflow", "asking")).stdout)
    assert as_json["run"] == run
    assert "No open waits" in (await weft("inbox", "--kind", "form")).stderr

    refused = await weft("withdraw", run, "nothing")
    assert refused.exit_code != 0 and "no wait 'nothing'" in refused.stderr
    done = await weft("withdraw", run, "ask", "--by", "Ada", "--reason", "asked twice")
    assert (done.exit_code, done.stdout) == (0, f"Withdrew 'Ask' of run {run}.\n")
    again = await weft("withdraw", run, as_json["id"])
    assert again.exit_code != 0 and "cancelled" in again.stderr


async def test_the_inbox_shows_questions_behind_any_number_of_timers(
    weft: Callable[..., Any], started: Callable[..., Any], asking: dict[str, Any]
) -> None:
    blocks: dict[str, Any] = {"start": {"type": "start"}, "nap": {"type": "wait", "params": {"seconds": 1000}}}
    nap = {"format": "weft/1", "name": "nap", "blocks": blocks, "edges": [{"source": "start", "target": "nap"}]}
    for _ in range(2):
        await started(nap)
    runs = [(await started(asking))["run"] for _ in range(2)]
    shown = await weft("inbox", "--limit", "1", "--json")
    assert [wait["run"] for wait in json.loads(shown.stdout)] == runs[:1]
    assert "There are 2 open waits" in (await weft("inbox", "--limit", "1")).stderr
    both = await weft("inbox", "--limit", "2")
    assert both.stdout.count("/resume/") == 2 and both.stderr == ""
    assert len(json.loads((await weft("inbox", "--kind", "timer", "--json")).stdout)) == 2


async def test_signals_are_sent_once_and_listed(
    weft: Callable[..., Any], started: Callable[..., Any], asking: dict[str, Any], tmp_path: Path
) -> None:
    run = (await started(asking))["run"]
    first = await weft(
        "signal", run, "paid", "--payload", '{"eur": 5}', "--correlation", "o-1", "--key", "k", "--by", "x"
    )
    assert first.stdout == f"Signal 1 (paid) to run {run} sent.\n"
    file = tmp_path / "payload.json"
    file.write_text("[1]")
    again = await weft("signal", run, "paid", "--payload", f"@{file}", "--key", "k")
    assert again.stdout == f"Signal 1 (paid) to run {run} had been sent before.\n"
    wrong = await weft("signal", run, "paid", "--payload", "{eur}")
    assert wrong.exit_code != 0 and "--payload is not JSON" in wrong.stderr
    assert (await weft("signals", run)).stdout == '   1  paid of o-1  kept  {"eur": 5}\n'
    (listed,) = json.loads((await weft("signals", run, "--json", "--name", "paid")).stdout)
    assert (listed["received_by"], listed["dedupe_key"]) == ("x", "k")
    assert "No signals" in (await weft("signals", run, "--name", "none")).stderr


def test_the_signing_key_is_that_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_SECRET_KEY", "a secret for tests only")
    monkeypatch.setenv("WEFT_DB", str(tmp_path / "weft.db"))
    ran = CliRunner().invoke(cli.weft, ["signing-key"])
    secret = hashlib.sha256(b"a secret for tests only").digest()
    assert ran.stdout.strip() == hmac.new(secret, b"notifications", hashlib.sha256).hexdigest()
    other = CliRunner().invoke(cli.weft, ["signing-key", "--for", "requests"])
    assert other.stdout.strip() == hmac.new(secret, b"requests", hashlib.sha256).hexdigest()
    assert list(tmp_path.iterdir()) == []

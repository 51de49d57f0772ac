"""A version copied from one server to another; and documents printed as Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from server import cli
from server.cli.common import Refused
from tests.support.documents import document
from tests.support.server import SyncServerProcess

TOKEN, OTHER = "token-of-the-first-server", "token-of-the-second-server"
FLOW: dict[str, Any] = {
    "format": "weft/1",
    "name": "orders",
    "blocks": {
        "daily": {"type": "schedule", "params": {"cron": "@daily", "enabled": False}},
        "read": {"type": "http", "params": {"url": "https://x.example/${PLACE}", "connection": "shop"}},
        "child": {"type": "run_workflow", "params": {"workflow": "ship", "input": {"connection": "<read.body>"}}},
        "text": {"type": "set", "params": {"value": {"connection": "none of it"}}},
    },
    "edges": [
        {"source": "daily", "target": "read"},
        {"source": "read", "target": "child"},
        {"source": "child", "target": "text"},
    ],
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SyncServerProcess, SyncServerProcess]]:
    here = SyncServerProcess(tmp_path_factory.mktemp("here"), {"WEFT_TOKEN": TOKEN})
    try:
        there = SyncServerProcess(tmp_path_factory.mktemp("there"), {"WEFT_TOKEN": OTHER})
        try:
            yield here, there
        finally:
            there.kill()
    finally:
        here.kill()


Servers = tuple[SyncServerProcess, SyncServerProcess]


def weft(servers: Servers, *arguments: str, **environ: str) -> Result:
    own = {"WEFT_URL": servers[0].url, "WEFT_TOKEN": TOKEN, "WEFT_TO_TOKEN": OTHER, **environ}
    return CliRunner(env=own).invoke(cli.weft, arguments, prog_name="weft", standalone_mode=False)


def deployed(servers: Servers, tmp_path: Path, name: str) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({**FLOW, "name": name}))
    assert "version 1" in weft(servers, "deploy", str(file)).stdout


def test_a_version_is_copied_with_what_the_other_server_lacks(servers: Servers, tmp_path: Path) -> None:
    deployed(servers, tmp_path, "orders")
    there = servers[1].url
    first = weft(servers, "promote", "orders", "--to", there)
    assert first.stdout.startswith(f"orders version 1 is version 1 at {there} (new, "), first.output
    said = [line.strip() for line in first.stderr.splitlines()]
    assert said[:3] == [
        f"PLACE is not set at {there}; see `weft secret set PLACE`",
        "connection shop is not there; see `weft connection add`",
        "workflow ship is not there; promote it, too",
    ]
    assert said[-1] == "its schedule daily starts runs there from now on"
    again = weft(servers, "promote", "orders", "--to", there, "--version", "1")
    assert again.stdout.startswith(f"orders version 1 is version 1 at {there} (unchanged, ")
    assert "starts runs" not in again.stderr

    of_both = [
        json.loads(weft(servers, "get", "orders").stdout),
        json.loads(weft(servers, "--url", there, "get", "orders", WEFT_TOKEN=OTHER).stdout),
    ]
    assert of_both == [{**FLOW, "name": "orders"}] * 2


def test_without_activate_the_other_server_has_a_draft(servers: Servers, tmp_path: Path) -> None:
    deployed(servers, tmp_path, "later")
    there = servers[1].url
    ran = weft(servers, "promote", "later", "--to", there, "--no-activate")
    assert ran.stdout.startswith("later version 1 is draft ") and ran.stdout.endswith(f" at {there}\n"), ran.output
    assert "later" not in weft(servers, "--url", there, "workflows", WEFT_TOKEN=OTHER).stdout


def test_the_token_of_this_server_is_not_sent_to_the_other(servers: Servers, tmp_path: Path) -> None:
    deployed(servers, tmp_path, "mine")
    ran = weft(servers, "promote", "mine", "--to", servers[1].url, WEFT_TO_TOKEN="")
    assert isinstance(ran.exception, Refused)
    assert "WEFT_TO_TOKEN" in ran.exception.hint
    file = tmp_path / "token"
    file.write_text(OTHER)
    by_file = weft(servers, "promote", "mine", "--to", servers[1].url, "--token-file", str(file), WEFT_TO_TOKEN="")
    assert by_file.stdout.startswith("mine version 1 is version 1 at "), by_file.output


def test_a_stored_workflow_as_python_is_deployed_as_the_same_version(servers: Servers, tmp_path: Path) -> None:
    deployed(servers, tmp_path, "printed")
    text = weft(servers, "get", "printed", "--python").stdout
    assert text.startswith("from weft.draw import ") and 'connection="shop"' in text
    out = tmp_path / "printed_by_weft.py"
    assert weft(servers, "get", "printed", "--python", "-o", str(out)).return_value == 0
    assert out.read_text() == text
    assert "printed version 1 (unchanged, " in weft(servers, "deploy", str(out)).stdout


def test_what_differs_is_listed_before_anything_is_copied(servers: Servers, tmp_path: Path) -> None:
    here, there = servers[0].url, servers[1].url
    old: dict[str, Any] = {"type": "set", "params": {"value": 1}}
    same: dict[str, Any] = {"type": "set", "params": {"value": 2}}
    pack: dict[str, Any] = {"type": "run_workflow", "params": {"workflow": "pack"}}
    parent = document("send", "start pack", "pack old", "pack same", blocks={"pack": pack, "old": old, "same": same})

    def deploy(workflow: dict[str, Any], **environ: str) -> None:
        file = tmp_path / "document.json"
        file.write_text(json.dumps(workflow))
        ran = weft(servers, "deploy", str(file), **environ)
        assert ran.return_value == 0, (ran.output, ran.exception)

    deploy(document("pack", "start x", blocks={"x": old}))
    deploy(parent)
    assert weft(servers, "promote", "pack", "--to", there).return_value == 0
    assert weft(servers, "promote", "send", "--to", there).return_value == 0
    assert "differs" not in weft(servers, "promote", "send", "--to", there, "--dry-run").stderr
    deploy(document("pack", "start x", blocks={"x": same}))
    pack = {"type": "run_workflow", "params": {"workflow": "pack", "input": {"n": 1}}}
    changed = document("send", "start pack", "pack mail", "pack same", blocks={"pack": pack, "mail": old, "same": same})
    deploy({**changed, "description": "other"})
    assert weft(servers, "cron", "add", "send", "--cron", "@daily", "--id", "nightly").return_value == 0
    ran = weft(servers, "promote", "send", "--to", there, "--dry-run")
    assert [line.strip() for line in ran.stderr.splitlines()] == [
        "it replaces version 1 there: new mail; removed old; changed pack; other description, edges",
        "workflow pack differs there (version 1); promote it, too",
        "schedule nightly of this server is not part of the document, and is not copied",
    ], ran.output
    kept = weft(servers, "--url", there, "get", "send", WEFT_TOKEN=OTHER)
    assert json.loads(kept.stdout) == parent, f"{here} has copied nothing"

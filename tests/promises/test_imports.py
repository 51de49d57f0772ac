"""Imported workflows: converted for people to repair, quiet until they are repaired, and never successful without a
tool that they had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from compiler.compile import compile_document
from compiler.imports.sim import convert
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry
from tests.support.command import Ran, weft
from tests.support.dev_model import dev_model
from tests.support.runs import engine_on, ran
from tests.support.server import SyncServerProcess

Json = dict[str, Any]
CATALOG = Registry.load(connectors())
OFFLINE: dict[str, str | None] = {"WEFT_DB": None, "WEFT_URL": None, "WEFT_FUNCTIONS": None, "WEFT_CONNECTORS": None}


def block(kind: str, name: str, settings: Json, *, trigger: bool = False) -> Json:
    return {
        "type": kind,
        "name": name,
        "position": {"x": 0, "y": 0},
        "enabled": True,
        "triggerMode": trigger,
        "subBlocks": {id: {"id": id, "type": "short-input", "value": value} for id, value in settings.items()},
        "outputs": {},
        "data": {},
    }


def export(name: str, *blocks: Json) -> Json:
    """As Sim exports it: these blocks, one after the other."""
    ids = [f"b{n}" for n in range(len(blocks))]
    edges = [
        {"id": f"e{n}", "source": a, "target": b, "sourceHandle": "source", "targetHandle": "target"}
        for n, (a, b) in enumerate(pairwise(ids))
    ]
    state = {"blocks": dict(zip(ids, blocks, strict=True)), "edges": edges, "loops": {}, "parallels": {}}
    return {"version": "1.0", "state": {**state, "metadata": {"name": name}}}


NIGHTLY = block("schedule", "nightly", {"scheduleType": "daily", "dailyTime": "03:00"}, trigger=True)
HOOK = block("generic_webhook", "hook", {"requireAuth": True}, trigger=True)
APOLLO = block("apollo", "Rows", {"operation": "people_search", "q": "x"})
QUIET = export("quiet", NIGHTLY, APOLLO)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    folder = tmp_path_factory.mktemp("imports")
    running = SyncServerProcess(folder, {"WEFT_TOKEN": "off"})
    yield running
    running.stop()


def command(server: SyncServerProcess, *arguments: str) -> Ran:
    return weft(*arguments, environ={**OFFLINE, "WEFT_URL": server.url})


def file_of(folder: Path, document: Json, name: str = "exported.json") -> str:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_an_export_is_converted_with_what_is_to_be_done(tmp_path: Path) -> None:
    source, out = file_of(tmp_path, QUIET), tmp_path / "flow.json"
    done = weft("import", source, "-o", str(out), environ=OFFLINE)
    assert done.returncode == 0 and done.stdout == ""
    assert 'Apollo "Rows": It is not imported.' in done.stderr and "0 errors" in done.stderr
    document = json.loads(out.read_text())
    assert (document["format"], document["blocks"]["b0"]["type"]) == ("weft/1", "schedule")
    assert json.loads(weft("import", source, environ=OFFLINE).stdout) == document
    assert "Schedule(" in weft("import", source, "--python", environ=OFFLINE).stdout
    again = weft("import", source, "-o", str(out), environ=OFFLINE)
    assert again.returncode != 0 and "already exists" in again.stderr
    ours = weft("import", str(out), environ=OFFLINE)
    assert ours.returncode != 0 and "not a workflow that n8n or Sim exported" in ours.stderr


def test_what_is_not_imported_is_a_finding_and_strict_refuses_it(tmp_path: Path) -> None:
    source = file_of(tmp_path, QUIET)
    out = str(tmp_path / "flow.json")
    assert weft("import", source, "-o", out, environ=OFFLINE).returncode == 0
    for path, code in ((source, "import_lossy"), (out, "not_imported")):
        easy, strict = weft("validate", path, environ=OFFLINE), weft("validate", path, "--strict", environ=OFFLINE)
        assert (easy.returncode, strict.returncode) == (0, 1)
        assert f"[{code}]" in easy.stdout and strict.stdout == easy.stdout
    sound = {"format": "weft/1", "name": "sound", "blocks": {"s": {"type": "start"}}, "edges": []}
    assert weft("validate", file_of(tmp_path, sound), "--strict", environ=OFFLINE).returncode == 0


def test_a_stored_import_is_printed_in_our_format(server: SyncServerProcess, tmp_path: Path) -> None:
    source = export("printed", block("start_trigger", "Start", {}), APOLLO)
    assert command(server, "deploy", file_of(tmp_path, source)).returncode == 0
    shown = json.loads(command(server, "get", "printed").stdout)
    assert (shown["format"], set(shown["blocks"])) == ("weft/1", {"b0", "b1"})
    assert json.loads(command(server, "get", "printed", "--original").stdout) == source
    assert "Function(" in command(server, "get", "printed", "--python").stdout
    both = command(server, "get", "printed", "--python", "--original")
    assert both.returncode != 0 and "exclude each other" in both.stderr


def triggers_of(server: SyncServerProcess, workflow: str) -> dict[str, bool]:
    with httpx.Client(base_url=server.url) as client:
        found = [
            *client.get("/api/schedules", params={"workflow": workflow}).json()["schedules"],
            *client.get("/api/webhooks", params={"workflow": workflow}).json()["webhooks"],
        ]
    return {row["id"]: row["enabled"] for row in found}


@pytest.mark.parametrize("trigger", [NIGHTLY, HOOK], ids=["schedule", "webhook"])
def test_triggers_are_off_while_blocks_are_not_imported(
    server: SyncServerProcess, tmp_path: Path, trigger: Json
) -> None:
    name = f"off-{trigger['name']}"
    source = file_of(tmp_path, export(name, trigger, APOLLO))
    stored = command(server, "deploy", source)
    assert stored.returncode == 0, stored.stderr
    assert "These triggers are off, because a block or a tool was not imported: b0. [triggers_off]" in stored.stderr
    assert triggers_of(server, name) == {f"{name}:b0": False}
    # One that a person turned on stays on.
    kind = "schedules" if trigger is NIGHTLY else "webhooks"
    httpx.post(f"{server.url}/api/{kind}/{name}:b0/enable", json={}).raise_for_status()
    assert command(server, "deploy", source).returncode == 0
    assert triggers_of(server, name) == {f"{name}:b0": True}
    # The converted document is the same workflow.
    out = str(tmp_path / "flow.json")
    assert weft("import", source, "-o", out, environ=OFFLINE).returncode == 0
    assert "[triggers_off]" in command(server, "deploy", out, "--name", f"{name}-2").stderr
    assert triggers_of(server, f"{name}-2") == {f"{name}-2:b0": False}
    active = command(server, "deploy", out, "--name", f"{name}-3", "--activate-triggers")
    assert "triggers_off" not in active.stderr and triggers_of(server, f"{name}-3") == {f"{name}-3:b0": True}
    # Repaired, they are on.
    repaired = json.loads(Path(out).read_text())
    repaired["blocks"]["b1"] = {"type": "set", "params": {"value": 1}}
    assert command(server, "deploy", file_of(tmp_path, repaired), "--name", f"{name}-2").returncode == 0
    assert triggers_of(server, f"{name}-2") == {f"{name}-2:b0": True}


def test_an_imported_draft_is_published_with_its_triggers_off(server: SyncServerProcess) -> None:
    with httpx.Client(base_url=server.url) as client:
        draft = client.post("/api/drafts", json={"document": export("drawn", NIGHTLY, APOLLO)}).json()
        saved = client.post(f"/api/drafts/{draft['id']}/versions", json={})
        assert saved.status_code == 201, saved.text
        assert "triggers_off" in [found["code"] for found in saved.json()["diagnostics"]]
        assert triggers_of(server, "drawn") == {"drawn:b0": False}
        again = client.post(f"/api/drafts/{draft['id']}/versions", json={"activate_triggers": True})
        assert "triggers_off" not in [found["code"] for found in again.json()["diagnostics"]]
        assert triggers_of(server, "drawn") == {"drawn:b0": True}


SEARCH = {"type": "exa", "title": "Exa", "params": {}, "operation": "search", "usageControl": "auto"}
TOLD = {
    "type": "custom-tool",
    "title": "rate",
    "schema": {
        "type": "function",
        "function": {
            "name": "get rate",
            "description": "Gets the rate.",
            "parameters": {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]},
        },
    },
    "code": "return 1",
    "usageControl": "auto",
}
SLACK_TOOL = {"type": "slack", "params": {}, "operation": "send", "usageControl": "auto"}


def with_tools() -> Json:
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Ask"}], "tools": [SEARCH, TOLD, SLACK_TOOL]}
    return export("asks", block("start_trigger", "Start", {}), block("agent", "Helper", asked))


def test_a_tool_stays_in_its_place_and_is_a_finding() -> None:
    imported = convert(with_tools(), catalog=CATALOG)
    tools = imported.document["blocks"]["b1"]["params"]["tools"]
    assert [tool["name"] for tool in tools] == ["Exa_search", "get_rate", "Slack_send"]
    assert tools[1]["arguments"] == TOLD["schema"]["function"]["parameters"]  # type: ignore[index]
    assert {tool["workflow"].partition(" ")[2] for tool in tools[:2]} == {"(not imported from Sim)"}
    hints = [found.hint for found in imported.diagnostics if "tool" in found.message]
    assert hints[1] == "Make a workflow of its code, and choose it in the tool."
    slack = {"operation": "send_message", "connection": "slack", "channel": "{{channel}}", "text": "{{text}}"}
    assert (tools[2]["block"], tools[2]["params"]) == ("connector.slack", slack)
    assert tools[2]["arguments"]["required"] == ["channel", "text"]
    compiled = compile_document(imported.document, CATALOG)
    assert compiled.plan is not None
    assert [found.pointer for found in compiled.diagnostics if found.code == "not_imported"] == [
        f"/blocks/b1/params/tools/{n}" for n in range(2)
    ]


async def test_an_agent_that_calls_such_a_tool_fails(tmp_path: Path) -> None:
    pytest.importorskip("executor.blocks.llm.provider")  # which takes long on a busy machine
    rules: list[Json] = [
        {"when": {"round": 0}, "calls": [{"name": "Slack_send", "arguments": {"text": "Hi"}}]},
        {"text": "All have been told."},
    ]
    async with dev_model(*rules) as model:
        env = {"OPENAI_API_KEY": "k-1"}
        async with engine_on(tmp_path / "weft.db", models={"OPENAI": model.url}, env=env) as engine:
            run: Any = await ran(engine, with_tools())
    assert run.status == "failed", run.output
    assert run.error["code"] == "workflow_not_found" and "Slack (not imported from Sim)" in run.error["message"]


@pytest.mark.parametrize(
    ("kind", "settings", "field"),
    [
        ("slack", {"operation": "send", "channel": None, "text": "<start.Text>", "credential": None}, "channel"),
        ("notion_v2", {"operation": "notion_query_database", "databaseId": "", "filter": "{}"}, "database"),
        ("google_sheets", {"operation": "read", "spreadsheetId": None, "range": "A1:B2"}, "spreadsheet"),
        ("gmail_v2", {"operation": "send_gmail", "to": "", "subject": "S", "body": "B"}, "to"),
        ("linear_v2", {"operation": "linear_create_issue", "teamId": None, "title": "T"}, "team"),
    ],
)
def test_an_empty_field_stays_open_in_the_block_of_the_service(kind: str, settings: Json, field: str) -> None:
    source = export("open", block("start_trigger", "Start", {}), block(kind, "Service", settings))
    made = convert(source, catalog=CATALOG).document
    assert made["blocks"]["b1"]["type"].startswith("connector.")
    compiled = compile_document(made, CATALOG)
    errors = [(found.code, found.pointer) for found in compiled.diagnostics if found.severity == "error"]
    assert errors == [("required", f"/blocks/b1/params/{field}")]
    made["blocks"]["b1"]["params"][field] = "chosen"
    assert compile_document(made, CATALOG).plan is not None


def test_a_trigger_of_github_is_a_webhook(server: SyncServerProcess, tmp_path: Path) -> None:
    event = {"webhookSecret": "{{GITHUB_WEBHOOK_SECRET}}", "selectedTriggerId": "github_release_published"}
    reads = block("function", "Reads", {"code": "return <githubtrigger.release.name>"})
    source = export("events", block("github_v2", "githubTrigger", event, trigger=True), reads)
    stored = command(server, "deploy", file_of(tmp_path, source))
    assert stored.returncode == 0 and 'for "release published"' in stored.stderr, stored.stderr
    found = httpx.get(f"{server.url}/api/webhooks").json()["webhooks"]
    assert [(row["auth"], row["enabled"]) for row in found if row["id"] == "events:b0"] == [("github", True)]
    shown = json.loads(command(server, "get", "events").stdout)
    assert shown["blocks"]["b1"]["params"]["code"] == "return <githubtrigger.body.release.name>"


@pytest.mark.parametrize("known", [None, (), ("XAI_API_KEY",)])
def test_an_api_key_keeps_its_name(known: tuple[str, ...] | None) -> None:
    asks = block("agent", "Asks", {"model": "gpt-4o", "userPrompt": "Hi", "apiKey": "{{XAI_API_KEY}}"})
    source = export("keyed", block("start_trigger", "Start", {}), asks)
    imported = convert(source, catalog=CATALOG, env_names=known)
    assert imported.document["blocks"]["b1"]["params"]["api_key"] == "${XAI_API_KEY}"
    said = [found.message for found in imported.diagnostics if found.code == "import_lossy"]
    missing = ['Agent "Asks": Its API key is read from the secret XAI_API_KEY.']
    assert said == ([] if known else missing)


def test_validate_names_the_key_as_well(tmp_path: Path) -> None:
    asks = block("agent", "Asks", {"model": "gpt-4o", "userPrompt": "Hi", "apiKey": "{{XAI_API_KEY}}"})
    source = file_of(tmp_path, export("keyed", block("start_trigger", "Start", {}), asks))
    assert "Its API key is read from the secret XAI_API_KEY." in weft("validate", source, environ=OFFLINE).stdout

"""A required param that is empty is a finding at its field before anything runs."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from compiler.compile import compile_document
from compiler.diagnostics import Diagnostic
from executor.blocks.types.registry import Registry

REGISTRY = Registry.load()
# What must be filled in: (block type, params, the field the finding leads to, what the form calls it).
EMPTY: list[tuple[str, dict[str, Any], str, str]] = [
    ("http", {}, "/url", "URL"),
    ("http", {"url": ""}, "/url", "URL"),
    ("http", {"url": "  "}, "/url", "URL"),
    ("http", {"url": None}, "/url", "URL"),
    ("function", {"code": ""}, "/code", "Code"),
    ("email", {"to": "", "subject": "Hi"}, "/to", "To"),
    ("email", {"to": [], "subject": "Hi"}, "/to", "To"),
    ("email", {"to": "a@example.org", "subject": ""}, "/subject", "Subject"),
    ("signal", {"name": ""}, "/name", "Signal name"),
    ("wait", {}, "/seconds", "Seconds"),
    ("wait", {"until": ""}, "/seconds", "Seconds"),
    ("run_workflow", {"workflow": ""}, "/workflow", "Workflow"),
    ("condition", {"cases": []}, "/cases", "Cases"),
    ("condition", {"cases": [{"id": "", "when": "1"}, {"id": "else"}]}, "/cases/0/id", "Id of case 1"),
    ("router", {"value": "", "routes": [{"id": "a"}], "default": "a"}, "/value", "Value"),
    ("router", {"value": 1, "routes": []}, "/routes", "Routes"),
    ("form", {"fields": {}}, "/fields", "Form fields"),
    ("variables", {"assign": [{"name": ""}]}, "/assign/0/name", "Variable of assignment 1"),
    ("callback", {"send": {"url": ""}}, "/send/url", 'URL of "Send the callback URL"'),
    ("schedule", {"cron": " "}, "/cron", "Cron expression"),
    ("start", {"fields": [{"name": ""}]}, "/fields/0/name", "Name of input field 1"),
    ("loop", {"mode": "for"}, "/count", "Number of times"),
    ("loop", {"mode": "for", "count": ""}, "/count", "Number of times"),
    ("loop", {"mode": "while", "condition": " "}, "/condition", "Condition"),
    ("loop", {"mode": "each"}, "/items", "Items"),
    ("parallel", {"mode": "count", "count": ""}, "/count", "Number of branches"),
]


@pytest.mark.parametrize(("type", "params", "field", "title"), EMPTY)
def test_what_is_empty_is_found_at_its_field(type: str, params: dict[str, Any], field: str, title: str) -> None:
    found = [finding for finding in findings(type, params) if finding.severity == "error"]
    assert [(finding.code, finding.pointer) for finding in found] == [("required", f"/blocks/it/params{field}")]
    assert found[0].message.partition(": ")[2].startswith(f"{title} is required")
    assert (found[0].block, found[0].field) == ("it", field.split("/")[1])


@pytest.mark.parametrize(
    ("type", "params"),
    [
        ("http", {"url": "<start.url>"}),
        ("email", {"to": ["<start.to>"], "subject": "<start.s>"}),
        ("wait", {"seconds": 0}),
        ("wait", {"until": "<start.until>"}),
        ("approval", {}),
        ("callback", {}),
        ("response", {}),
        ("set", {}),
        ("webhook", {}),
        ("router", {"routes": [{"id": "a", "when": "1"}], "default": "a"}),
        ("run_workflow", {"workflow": "other"}),
        ("form", {"fields": "<start.form>"}),
    ],
)
def test_what_is_filled_or_need_not_be_is_not(type: str, params: dict[str, Any]) -> None:
    assert [finding for finding in findings(type, params) if finding.severity == "error"] == []


def test_cases_without_a_condition_are_found_where_it_is_missing() -> None:
    """Bug 7: yes / else / else."""
    cases = [{"id": "yes", "title": "Big order", "when": "1"}, {"id": "two", "when": ""}, {"id": "no"}]
    found = [finding for finding in findings("condition", {"cases": cases}) if finding.severity == "error"]
    assert [(finding.code, finding.pointer) for finding in found] == [
        ("else_not_last", "/blocks/it/params/cases/1/when")
    ]
    assert found[0].message == 'Condition "It": case "two" has no condition. Only the last case can be without one.'


async def test_the_draft_is_saved_and_the_run_refused_with_all_findings(client: httpx.AsyncClient) -> None:
    document = document_of("http", {"url": ""})
    document["blocks"]["mail"] = {"type": "email", "name": "Tell", "params": {"to": "", "subject": ""}}
    document["edges"].append({"source": "it", "target": "mail"})
    draft = (await client.post("/api/drafts", json={"document": document})).json()
    wanted = ["/blocks/it/params/url", "/blocks/mail/params/to", "/blocks/mail/params/subject"]
    assert [finding["pointer"] for finding in draft["diagnostics"]] == wanted

    saved = await client.put(
        f"/api/drafts/{draft['id']}", json={"document": document}, headers={"if-match": f'"{draft["rev"]}"'}
    )
    assert saved.status_code == 200
    refused = await client.post(f"/api/drafts/{draft['id']}/run", json={})
    assert (refused.status_code, refused.json()["code"]) == (422, "document_invalid")
    assert [finding["pointer"] for finding in refused.json()["diagnostics"]] == wanted
    assert refused.json()["diagnostics"][0]["message"] == 'HTTP request "It": URL is required.'
    checked = await client.post("/api/validate", json=document)
    assert [finding["code"] for finding in checked.json()["diagnostics"]] == ["required"] * 3


def document_of(type: str, params: dict[str, Any]) -> dict[str, Any]:
    """The block, called It, behind a start; what is in a container of it is right."""
    block = {"type": type, "name": "It", "params": params}
    blocks: dict[str, Any] = {"start": {"type": "start"}, "it": block}
    edges: list[dict[str, str]] = [{"source": "start", "target": "it"}]
    spec = REGISTRY.get(type)
    assert spec is not None
    if spec.trigger:
        return {"format": "weft/1", "blocks": {"it": block}, "edges": []}
    if spec.container:
        blocks["inner"] = {"type": "set", "parent": "it", "params": {"value": 1}}
        edges.append({"source": "it", "handle": "body", "target": "inner"})
    return {"format": "weft/1", "blocks": blocks, "edges": edges}


def findings(type: str, params: dict[str, Any]) -> list[Diagnostic]:
    return compile_document(document_of(type, params), REGISTRY).diagnostics

"""Blocks of Sim that have no counterpart here."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from compiler.imports import as_ours, sim
from compiler.imports.sim import convert
from compiler.imports.sim_services import NOTES_MAX, foreign, settings_of, title_of
from executor.blocks.types.registry import Registry
from tests.support.sim_templates import TEMPLATES
from tests.unit.compiler.imports.sim_documents import Json, block, compiled
from tests.unit.compiler.support import CATALOG

SERVICES = {
    "ocr-invoice-db": ["File", "Supabase"],
    "gh-release-agent": ["Slack"],
    "meeting-followup-agent": ["Google Calendar", "Gmail"],
    "resume-parser": ["Google Sheets"],
    "email-triage": [],
    "competitor-monitor": ["Slack"],
    "brand-mention": [],
    "lead-enricher": ["Google Sheets"],
    "customer-feedback-digest": ["Slack"],
    "pr-review": ["Slack"],
    "knowledge-base-qa": [],
}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template["state"]["metadata"]["name"])
def test_each_template_compiles_and_names_what_is_missing(template: Json) -> None:
    made = compiled(template, Registry.load())
    open_fields = [found.message for found in made.diagnostics if found.code == "required"]
    assert open_fields == ([] if made.plan is not None else ['"Agent": Collection is required.']), made.diagnostics
    assert {found.code for found in made.diagnostics} <= {"import_lossy", "required"}
    assert all(found.block and found.hint for found in made.diagnostics)
    missing = [found.message.partition(' "')[0] for found in made.diagnostics if "in its place" in found.message]
    assert missing == SERVICES[template["state"]["metadata"]["name"]]


def test_there_are_eleven() -> None:
    assert sorted(SERVICES) == sorted(template["state"]["metadata"]["name"] for template in TEMPLATES)


def document(*blocks: Json) -> Json:
    connections = [{"source": one["id"], "target": other["id"]} for one, other in pairwise(blocks)]
    return {"version": "1.0", "blocks": list(blocks), "connections": connections, "loops": {}}


def test_a_function_that_fails_takes_its_place() -> None:
    sent = block("n", "notion_v2", name="Page", operation="create", title="<start.title>", apiKey="sk-1", unset=None)
    after = block("f", "function", code="return [<page.url>, <page.error>, <page>]")
    source = document(block("start", "start_trigger"), sent, after)
    result = convert(source, catalog=CATALOG)
    page = result.document["blocks"]["n"]
    assert (page["type"], page["name"]) == ("function", "Page")
    assert page["params"]["code"].startswith('throw new Error("The Notion block \\"Page\\" was not imported from Sim.')
    assert page["description"] == 'Notion in Sim:\n{\n  "operation": "create",\n  "title": "<start.title>"\n}'
    code = "return [<page.result.url>, <page.error.message>, <page>]"
    assert result.document["blocks"]["f"]["params"]["code"] == code
    assert [(found.message, found.hint, found.block) for found in result.diagnostics] == [
        (
            'Notion "Page": It is not imported. A block that fails is in its place.',
            "Replace it with the block connector.notion.",
            "n",
        )
    ]


def test_types_of_the_catalog_stay() -> None:
    source = document(block("start", "start_trigger"), block("t", "task", value=1))
    assert convert(source, catalog=CATALOG).document["blocks"]["t"]["type"] == "task"


def test_readers_of_the_structure_need_no_catalog() -> None:
    source = document(block("start", "start_trigger"), block("t", "apollo", table="x"))
    assert as_ours(source, lambda: {"sim": sim}).document["blocks"]["t"] == {
        "type": "apollo",
        "name": "t",
        "params": {"table": "x"},
    }
    assert as_ours(source, lambda: {"sim": sim}, catalog=CATALOG).document["blocks"]["t"]["type"] == "function"


def test_all_its_ways_become_one() -> None:
    source = document(block("start", "start_trigger"), block("t", "apollo"), block("a", "task"))
    source["connections"][1]["sourceHandle"] = "found"
    source["connections"].append({"source": "t", "target": "a", "sourceHandle": "error"})
    edges = convert(source, catalog=CATALOG).document["edges"]
    assert edges[1:] == [{"source": "t", "target": "a"}, {"source": "t", "target": "a", "handle": "error"}]


def test_its_name_is_no_reference_in_the_code() -> None:
    code = foreign("x", 'a <start.y> "${KEY}"')[1]["code"]
    assert "<" not in code and "$" not in code
    text = json.loads(code.removeprefix("throw new Error(").removesuffix(")"))
    assert text.startswith('The X block "a <start.y> "${KEY}"" was not')


def test_credentials_are_no_notes() -> None:
    kept = {"apiKey": "{{ KEY }}", "to": "x"}
    left_out = {"password": "p", "botToken": "t", "credential": "c", "accessKeyId": "i", "cc": "", "list": []}
    assert json.loads(settings_of("sftp", {**kept, **left_out}).partition("\n")[2]) == kept
    assert settings_of("sftp", left_out) == ""
    assert len(settings_of("sftp", {"body": "b" * 9_000})) == NOTES_MAX


@pytest.mark.parametrize(
    ("kind", "title"), [("google_sheets_v2", "Google Sheets"), ("github", "GitHub"), ("v2_thing", "V2 Thing")]
)
def test_titles(kind: str, title: str) -> None:
    assert title_of(kind) == title

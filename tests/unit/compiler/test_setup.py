"""The tasks that are left before a workflow runs, of imported workflows and of others."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.needs import missing_connections
from compiler.setup import Task, tasks
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry
from executor.kernel.run.imports import as_ours
from tests.support.sim_templates import TEMPLATES

CATALOG = Registry.load(connectors())
BY_NAME = {template["state"]["metadata"]["name"]: template for template in TEMPLATES}


def left(document: dict[str, Any], unready: dict[str, str] | None = None, known: tuple[str, ...] = ()) -> list[Task]:
    found = compile_document(document, CATALOG, env_names=()).diagnostics
    found += missing_connections(document, CATALOG, dict.fromkeys(known, True))
    return list(tasks(document, found, CATALOG, lambda model: (unready or {}).get(model.partition(":")[0], "")))


def of_template(name: str, **unready: str) -> list[tuple[str, str, tuple[str, ...]]]:
    document = as_ours(BY_NAME[name], catalog=CATALOG).document
    return [(one.kind, one.title, one.pointers) for one in left(document, unready)]


def test_the_collection_of_a_tool_is_chosen() -> None:
    place = "/blocks/b/params/tools/0/params/collection"
    assert of_template("knowledge-base-qa") == [("choose", 'Choose Collection in "Knowledge_Base_search"', (place,))]


def test_an_imported_workflow_needs_its_account_its_channel_and_a_key() -> None:
    found = of_template("pr-review", anthropic="Store its key.", openai="Store its key.")
    kinds = [kind for kind, _, _ in found]
    assert kinds == ["connect", "model", "choose", "triggers"], found
    assert found[0][1:] == ("Connect Slack", ("/blocks/c/params/connection",))
    assert found[2][1] == 'Choose Channel in "slackNotify"' and found[2][2] == ("/blocks/c/params/channel",)
    assert found[3][1] == 'Publish, to turn on "githubTrigger"'


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_each_template_has_a_list_without_doubles(name: str) -> None:
    document = as_ours(BY_NAME[name], catalog=CATALOG).document
    found = left(document)
    assert found and len({one.id for one in found}) == len(found)
    assert all(block in document["blocks"] for one in found for block in one.blocks)
    assert [one.kind for one in found].count("triggers") <= 1


def block(type: str, **params: Any) -> dict[str, Any]:
    return {"type": type, "params": params}


def doc(**blocks: dict[str, Any]) -> dict[str, Any]:
    blocks = {"start": {"type": "start"}, **blocks}
    edges = [{"source": a, "target": b} for a, b in zip(blocks, list(blocks)[1:], strict=False)]
    return {"format": "weft/1", "blocks": blocks, "edges": edges}


def test_one_task_for_all_blocks_of_a_service() -> None:
    message = {"operation": "send_message", "text": "x", "channel": "C1"}
    found = left(doc(a=block("connector.slack", **message), b=block("connector.slack", **message)))
    assert [(one.kind, one.blocks, one.pointers) for one in found] == [
        ("connect", ("a", "b"), ("/blocks/a/params/connection", "/blocks/b/params/connection"))
    ]
    named = left(doc(a=block("connector.slack", **message, connection="work")))
    assert [(one.kind, one.name, one.title) for one in named] == [("connect", "work", "Connect Slack")]
    assert left(doc(a=block("connector.slack", **message, connection="work")), known=("work",)) == []


def test_secrets_models_and_what_is_empty() -> None:
    found = left(
        doc(
            a=block("http", url="https://x.example/${SHOP_KEY}", headers={"X": "${SHOP_KEY}"}),
            b=block("agent", model="openai:gpt-5-mini", prompt="Hi"),
            c=block("agent", model="openai:gpt-5-mini", prompt="Hi", api_key="${SHOP_KEY}"),
            d=block("connector.notion", operation="query_database", connection="notes"),
            e=block("http"),
        ),
        {"openai": "Store its key."},
        ("notes",),
    )
    assert [(one.id, one.blocks) for one in found] == [
        ("secret:SHOP_KEY", ("a", "c")),
        ("model:openai", ("b",)),
        ("choose:/blocks/d/params/database", ("d",)),
        ("fill:/blocks/e/params/url", ("e",)),
    ]


def test_a_document_of_any_shape_has_a_list() -> None:
    odds: list[Any] = [[], None, {"blocks": []}, {"blocks": {"a": None, "b": {"type": 1, "params": 2}}}]
    for odd in odds:
        assert tasks(odd, (), CATALOG) == ()
    agent = block("agent", model="x:y", prompt="Hi", tools=[{"workflow": "Mail (not imported from Sim)"}, 3])
    (tool,) = (one for one in left(doc(a=agent)) if one.kind == "replace")
    assert tool.pointers == ("/blocks/a/params/tools/0",) and "the tool" in tool.title

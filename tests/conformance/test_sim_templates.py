"""The templates of Sim, imported and run with a scripted model: to their end where all blocks have a counterpart; else
until a block that has none, which says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry
from executor.kernel.run.imports import as_ours
from tests.support.dev_model import dev_model
from tests.support.runs import ended, engine_on, ran
from tests.support.sim_templates import TEMPLATES

pytest.importorskip("pydantic_ai")

BY_NAME = {template["state"]["metadata"]["name"]: template for template in TEMPLATES}
# Their models are served by OpenAI or Anthropic, by an endpoint that the operator sets, or are not named.
ENDPOINTS = ("OPENAI", "GOOGLE", "DEFAULT")
INPUT = {"email": {"from": "ada@example.com", "subject": "Down", "bodyText": "All is down."}, "input": "How?"}
TEXT = {"text": "Noted."}
PERSON = {"output": {"name": "Ada", "email": "ada@example.com"}}


@pytest.mark.filterwarnings("ignore:The model 'claude:DeprecationWarning")  # of the library, about old models
async def test_without_blocks_of_vendors_it_runs(tmp_path: Path) -> None:
    async with dev_model(TEXT) as model:
        models = {**dict.fromkeys(ENDPOINTS, model.url), "ANTHROPIC": f"anthropic+http://{model.place}"}
        env = {"OPENAI_API_KEY": "k-1", "ANTHROPIC_API_KEY": "k-2"}
        async with engine_on(tmp_path / "weft.db", models=models, env=env) as engine:
            run = await ran(engine, BY_NAME["email-triage"], input=INPUT)
            assert run.status == "succeeded", run.error
            (asked,) = await model.calls()
    assert run.output["content"] == "Noted." and "All is down." in str(asked)


async def test_the_one_with_knowledge_answers_from_the_collection_that_is_chosen(tmp_path: Path) -> None:
    document = as_ours(BY_NAME["knowledge-base-qa"], catalog=Registry.load(connectors())).document
    document["blocks"]["b"]["params"]["tools"][0]["params"]["collection"] = "drinks"
    name = document["blocks"]["b"]["params"]["tools"][0]["name"]
    first = {"when": {"tool": ""}, "calls": [{"name": name, "arguments": {"query": "How is tea brewed?"}}]}
    async with (
        dev_model(first, TEXT) as model,
        engine_on(tmp_path / "weft.db", models=dict.fromkeys((*ENDPOINTS, "DEV"), model.url)) as engine,
    ):
        await engine.knowledge.create("drinks", "dev:words")
        added = await engine.knowledge.add("drinks", "tea.md", b"Green tea is brewed at 80 degrees.")
        await ended(engine, added.run)
        run = await ran(engine, document, input=INPUT)
        assert run.status == "succeeded", run.error
        *_, last = await model.calls()
    assert run.output["content"] == "Noted." and "brewed at 80 degrees" in str(last)


@pytest.mark.parametrize(
    ("name", "rule", "service", "advice"),
    [
        ("pr-review", TEXT, "Slack", "connector.slack"),
        ("resume-parser", PERSON, "Google Sheets", "connector.google_sheets"),
        ("customer-feedback-digest", TEXT, "Slack", "connector.slack"),
    ],
)
async def test_others_run_until_such_a_block(
    tmp_path: Path, name: str, rule: dict[str, Any], service: str, advice: str
) -> None:
    async with dev_model(rule) as model:
        env = {"OPENAI_API_KEY": "k-1"}
        async with engine_on(tmp_path / "weft.db", models=dict.fromkeys(ENDPOINTS, model.url), env=env) as engine:
            run: Any = await ran(engine, BY_NAME[name], input={})
            assert len(await model.calls()) == 1
    assert run.status == "failed"
    assert f"The {service} block" in str(run.error) and advice in str(run.error)

"""Sim's blocks that ask a language model."""

import json
from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.imports.sim_models import metric_name, model_params
from compiler.imports.sim_text import Settings, Texts
from executor.blocks.types.registry import Registry
from tests.unit.compiler.imports.sim_documents import block, imported, said

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("named", "model", "lost"),
    [
        ("gpt-4o", "openai:gpt-4o", 0),
        ("o3-mini", "openai:o3-mini", 0),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5", 0),
        ("ollama/llama3:8b", "ollama:llama3:8b", 1),
        ("gemini-2.5-pro", "google:gemini-2.5-pro", 1),
        ("grok-4", "xai:grok-4", 1),
        ("own-model", "own-model", 1),
        ("<start.model>", "<start.model>", 0),
    ],
)
def test_models(named: str, model: str, lost: int) -> None:
    settings = Settings("a", {"model": named}, Texts({}, None))
    assert model_params(settings) == {"model": model}
    assert len(settings.losses) == lost


def test_keys_are_references_or_left_out() -> None:
    texts = Texts({}, ["OPENAI_API_KEY"])
    known = Settings("a", {"apiKey": "{{OPENAI_API_KEY}}", "temperature": "0.2"}, texts)
    assert model_params(known) == {"api_key": "${OPENAI_API_KEY}", "temperature": 0.2}
    assert known.losses == []
    written = Settings("a", {"apiKey": "sk-123456789"}, texts)
    assert model_params(written) == {}
    assert len(written.losses) == 1 and "sk-123" not in str(written.losses)


def test_an_evaluator_and_a_guardrail() -> None:
    metrics = [{"id": "1", "name": "Tone of Voice", "description": "Friendly?", "range": {"min": 1, "max": 5}}, {}]
    evaluator = block("e", "evaluator", name="Score", content="<start.text>", metrics=metrics, model="gpt-4o")
    personal = ["EMAIL_ADDRESS", "PERSON"]
    guard = block("g", "guardrails", name="Guard", input="<start.text>", validationType="pii", piiEntityTypes=personal)
    code = "return <score.tone_of_voice> + <guard.passed> + <guard.detectedEntities>"
    after = block("a", "function", code=code)
    result = imported(block("start", "start_trigger"), evaluator, guard, after, wires="start e; e g; g a")
    blocks = result.document["blocks"]
    assert blocks["e"]["type"] == "evaluator" and blocks["e"]["params"] == {
        "model": "openai:gpt-4o",
        "content": "<start.text>",
        "metrics": [{"name": "tone_of_voice", "description": "Friendly?", "min": 1, "max": 5}],
    }
    assert blocks["g"]["type"] == "guardrail"
    assert blocks["g"]["params"] == {"input": "<start.text>", "check": "pii", "pii": ["email"]}
    assert blocks["a"]["params"]["code"] == "return <score.scores.tone_of_voice> + <guard.passed> + <guard.found>"
    ways = [edge.get("handle") for edge in result.document["edges"] if edge["source"] == "g"]
    assert ways == ["pass", "fail"]
    assert [message for message, _ in said(result)] == [
        'Evaluator "Score": A metric that cannot be read is left out.',
        'Guardrails "Guard": These kinds of personal data are not found: PERSON.',
    ]
    assert compile_document(result.document, Registry.load()).plan is not None


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"validationType": "json"}, {"check": "json"}),
        ({"validationType": "regex", "regex": "^a"}, {"check": "regex", "pattern": "^a"}),
        ({"validationType": "hallucination", "model": "gpt-4o"}, {"check": "model", "model": "openai:gpt-4o"}),
        ({"validationType": "new"}, {"check": "json"}),
    ],
)
def test_guardrails(params: dict[str, Any], expected: dict[str, Any]) -> None:
    guard = block("g", "guardrails", input="x", **params)
    made = imported(block("start", "start_trigger"), guard, wires="start g").document["blocks"]["g"]["params"]
    assert {name: made[name] for name in expected} == expected and made["input"] == "x"


def test_names_of_metrics() -> None:
    assert [metric_name(name) for name in ("Clarity", " 2nd try", "über")] == ["clarity", "m_2nd_try", "m__ber"]


def test_an_agent() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "About <start.text>: {{TONE}}"},
        {"role": "user"},
    ]
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    made = block(
        "g", "agent", name="Helper", messages=messages, model="claude-sonnet-4-5", temperature=0.3,
        responseFormat=json.dumps({"name": "x", "strict": True, "schema": schema}),
        tools=[{"type": "exa", "title": "Exa"}, {"type": "workflow"}, {"type": "x", "usageControl": "none"}],
    )  # fmt: skip
    after = block(
        "a", "function", code="return [<helper.answer>, <helper.content>, <helper.tokens>, <helper.toolCalls>]"
    )
    result = imported(block("start", "start_trigger"), made, after, wires="start g; g a")
    blocks = result.document["blocks"]
    assert blocks["g"]["type"] == "agent" and blocks["g"]["params"] == {
        "model": "anthropic:claude-sonnet-4-5",
        "temperature": 0.3,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
        "prompt": "About <start.text>: ${TONE}",
        "output_schema": schema,
        "tools": [
            {"name": "Exa", "description": "Exa", "workflow": "Exa (not imported from Sim)"},
            {"name": "Workflow", "description": "Workflow", "workflow": "Workflow (not imported from Sim)"},
        ],
    }
    code = "return [<helper.content.answer>, <helper.content>, <helper.usage>, <helper.tool_calls>]"
    assert blocks["a"]["params"]["code"] == code
    assert said(result) == [
        ('Agent "Helper": A message that cannot be read is left out.', "Add the message."),
        (
            'Agent "Helper": Its tool "Exa" is not imported. The agent fails when the model calls it.',
            "Use an http block that calls the service in the tool, or choose a workflow that does.",
        ),
        (
            'Agent "Helper": Its tool "Workflow" is not imported. The agent fails when the model calls it.',
            "Import that workflow, too, and choose it in the tool.",
        ),
    ]
    assert compile_document(result.document, Registry.load()).plan is not None


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"memoryType": "conversation"}, {"memory_messages": 400}),
        ({"memoryType": "sliding_window", "slidingWindowSize": "6"}, {"memory_messages": 6}),
        ({"memoryType": "sliding_window", "slidingWindowSize": "all"}, {"memory_messages": 10}),
        ({"memoryType": "sliding_window_tokens", "slidingWindowTokens": 9_000_000}, {"memory_tokens": 1_000_000}),
    ],
)
def test_a_memory(params: Json, expected: Json) -> None:
    made = block("g", "agent", model="gpt-4o", userPrompt="Hi", conversationId="<start.text>", **params)
    result = imported(block("start", "start_trigger"), made, wires="start g")
    found = result.document["blocks"]["g"]["params"]
    assert found == {"model": "openai:gpt-4o", "prompt": "Hi", "memory": "<start.text>", **expected}
    assert said(result) == []


def test_an_older_agent() -> None:
    made = block(
        "g", "agent", systemPrompt="Be brief.", userPrompt="About <start.text>", responseFormat="{", memoryType="x"
    )
    result = imported(block("start", "start_trigger"), made, wires="start g")
    assert result.document["blocks"]["g"]["params"] == {
        "model": "default:model",
        "system": "Be brief.",
        "prompt": "About <start.text>",
    }
    assert [message for message, _ in said(result)] == [
        'Agent "g": It names no model and gets default:model.',
        'Agent "g": Its response format cannot be read.',
        'Agent "g": Its memory is not imported.',
    ]


def test_a_file_that_a_tool_reads_is_given_to_the_model() -> None:
    reads = {"type": "mistral_parse_v3", "title": "Reader", "params": {"fileReference": "<start.cv>"}}
    result = imported(block("a", "agent", userPrompt="Read it", tools=[reads]))
    assert result.document["blocks"]["a"]["params"]["files"] == "<start.cv>"
    assert "tools" not in result.document["blocks"]["a"]["params"]

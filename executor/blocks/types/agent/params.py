"""The params of `agent`, faults of them that their schema cannot express, and the schema of the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from compiler.catalog import Finding, Params
from compiler.diagnostics import suggest
from compiler.references import find
from executor.blocks.types import knowledge
from executor.blocks.types.agent.handoffs import HandoffParams, check_handoffs
from executor.blocks.types.agent.memory import MemoryParams
from executor.blocks.types.agent.tools import BLOCKS, PLACE, ToolParams, takes_arguments
from executor.blocks.types.asking import FILES, SPENT, ModelParams
from executor.blocks.types.params import changed, listed, param, repeated, schema_problem
from executor.blocks.types.sql import refers

MEMORY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "scope": {"type": "string"}, "messages": {"type": "integer"}},
}


class AgentParams(ModelParams, MemoryParams, required=("model",)):
    files: Any = changed(FILES, order=8.5)
    system: str | None = param(
        "Instructions", "What the model is and how it works.", order=7, widget="longtext", rows=4
    )
    prompt: Any = param("Prompt", "What the model is asked.", order=8, widget="longtext", rows=4)
    messages: Any = param(
        "Messages", "Earlier messages: a list of {role, content, files}, of user and assistant.", order=9, advanced=True
    )
    tools: list[ToolParams] | None = param("Tools", "What the model may call.", order=10, maxItems=50)
    handoffs: list[HandoffParams] | None = param(
        "Handoffs",
        "Other agents that may continue the conversation, with all calls so far.",
        order=10.5,
        advanced=True,
        maxItems=10,
    )
    output_schema: dict[str, Any] | None = param(
        "Output schema",
        "JSON Schema of the answer, an object. Leave empty for text.",
        order=11,
        widget="schema",
        weft="literal",
    )
    output_mode: str = param(
        "How the output is asked for",
        "By the output format of the model, by a tool, or in words.",
        default="auto",
        order=12,
        advanced=True,
        weft="literal",
        choices={"auto": "Automatic", "native": "Output format", "tool": "Tool", "prompted": "Words"},
        type="string",
    )
    max_rounds: int = param(
        "Maximum rounds", "Calls of the model.", default=20, order=13, advanced=True, minimum=1, maximum=100
    )
    max_tool_calls: int = param(
        "Maximum tool calls", "Of all tools together.", default=50, order=14, advanced=True, minimum=0, maximum=300
    )
    budget_tokens: int | None = param(
        "Budget (tokens)", "No call is made once this number of tokens is used.", order=15, advanced=True, minimum=1
    )
    budget_usd: float | None = param(
        "Budget (US dollars)",
        "No call is made once this is spent. The price of the model must be known.",
        order=16,
        advanced=True,
        exclusiveMinimum=0,
    )


def check(functions: Sequence[str], params: Params) -> tuple[Finding, ...]:
    """`functions`: the names of those that tools may be."""
    found: list[Finding] = []
    if all(params.get(name) in (None, "", []) for name in ("prompt", "messages")):
        found.append(Finding("required", "/prompt", "Prompt is required."))
    for at, tool in listed(params.get("tools")):
        kinds = [kind for kind in ("workflow", "block", "function", "mcp") if tool.get(kind) not in (None, "", {})]
        if not kinds:
            message = "Workflow, block, Python function or MCP server is required."
            found.append(Finding("required", f"/tools/{at}/workflow", message))
        elif len(kinds) > 1:
            message = "A tool has one of workflow, block, Python function and MCP server."
            found.append(Finding("param_invalid", f"/tools/{at}/{kinds[1]}", message))
        if kinds == ["block"]:
            found += _of_block(tool, f"/tools/{at}/params")
        if kinds == ["function"] and (name := tool["function"]) not in functions:
            message = f"There is no Python function {str(name)[:80]!r} here."
            found.append(Finding("param_invalid", f"/tools/{at}/function", message, suggest(str(name), functions)))
        if tool.get("approve") == "if" and tool.get("approve_if") in (None, ""):
            found.append(Finding("required", f"/tools/{at}/approve_if", "The condition of the approval is required."))
    found += [*repeated(params, "tools", "name", "tool"), *check_handoffs(params)]
    if (problem := schema_problem(params.get("output_schema"))) is not None:
        found.append(Finding("param_invalid", "/output_schema", f"It is not a JSON Schema: {problem}"))
    return tuple(found)


def _of_block(tool: Params, at: str) -> Iterator[Finding]:
    """Yield what is wrong with the params of a block. Those of a connector are checked when it is called."""
    params = tool.get("params") or {}
    if not isinstance(params, dict):
        return
    if tool["block"] == knowledge.block.spec.type:
        params = knowledge.of_tool(params)
        if params.get("operation") in ("add", "embed"):
            hint = "Add documents by a block."
            yield Finding("param_invalid", f"{at}/operation", "A tool can search or delete.", hint)
    for name, value in params.items():
        if not takes_arguments(tool["block"], name) and PLACE.search(str(value)):
            hint = "Write :name there, and give the parameter of that name {{name}}." if name == "query" else ""
            yield Finding("param_invalid", f"{at}/{name}", "The model cannot fill in this parameter.", hint)
    code = params.get("code")
    if tool["block"] == "function" and isinstance(code, str) and any(refers(found) for found in find(code)):
        hint = "The code has its arguments in args. Use text + text in place of ${name}."
        yield Finding("param_invalid", f"{at}/code", "The code of a tool cannot contain references.", hint)
    block = BLOCKS.get(tool["block"])
    if block is None:
        return
    for name in block.spec.params.get("required", ()):
        if params.get(name) in (None, ""):
            title = block.spec.params["properties"][name]["title"]
            yield Finding("required", f"{at}/{name}", f"{title} is required.")
    for finding in block.spec.check(params) if block.spec.check else ():
        yield replace(finding, pointer=f"{at}{finding.pointer}")


def output_from(params: Params) -> dict[str, Any]:
    schema = params.get("output_schema")
    agent = {"agent": {"type": "string"}} if params.get("handoffs") else {}
    calls = {
        "type": "object",
        "properties": {
            "tool": {"type": "string"},
            "arguments": {"type": "object"},
            "error": {"type": ["string", "null"]},
            **agent,
        },
    }
    return {
        "type": "object",
        "properties": {
            "content": schema if isinstance(schema, dict) and schema else {"type": "string"},
            "rounds": {"type": "integer"},
            "tool_calls": {"type": "array", "items": calls},
            **agent,
            **SPENT,
            **({"memory": MEMORY} if params.get("memory") not in (None, "") else {}),
        },
    }

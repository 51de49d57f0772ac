"""`agent`: a language model that calls tools until it has an answer. The loop is weft's, and each call of the model and
of a tool is a step, so a finished call is never repeated or paid for again. Approvals and runs take no memory.

The handler is entered again after its waits and after each crash, and makes the same calls in the same order: first the
lists of tools of MCP servers; then the model, and an approval for each of its tool calls that needs one; when all of
these are answered, the blocks and the tools of MCP servers side by side, then the runs side by side.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import orjson

from compiler.catalog import BlockSpec, Finding, Params
from compiler.schema import schema_error
from executor.blocks.llm.base import Conversation, Message, OutputMode, OutputSpec, Reply, ToolCall
from executor.blocks.types.agent_mcp import call_remote, with_servers
from executor.blocks.types.agent_tools import (
    TOOLS,
    Tool,
    call_block,
    child_of,
    effect_of,
    needs_approval,
    params_of,
    problem_with,
    question,
    read_tools,
    shown_result,
)
from executor.blocks.types.asking import ATTEMPTS, SPENT, Spent, conversation_of, model_params, repair, reply_to, wrong
from executor.blocks.types.memory import memory_params, read_memory, turn_of
from executor.blocks.types.model_files import file_ids, with_files
from executor.blocks.types.shared_params import invalid, text
from executor.errors import BlockError
from executor.kernel.core.events import StepEffect
from executor.kernel.handler.base import Context, Done
from executor.kernel.values.coerce import coerce
from executor.kernel.values.money import nanos_of
from executor.kernel.values.payload import render

ROUNDS: Final = 20
TOOL_CALLS: Final = 50
PARALLEL: Final = 4
_TIMEOUT_MS = 30 * 60_000
# These errors end the attempt and are not returned to the model: the cause is the handler or the author, not this call.
_OWN_ERRORS: Final = frozenset(
    {"attempt_over", "limit_steps", "step_nested", "steps_changed", "steps_not_available", "workflow_not_found"}
)

MEMORY: dict[str, Any] = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "scope": {"type": "string"}, "messages": {"type": "integer"}},
}
_PARAMS: dict[str, Any] = {
    "type": "object",
    "required": ["model"],
    "additionalProperties": False,
    "properties": {
        **model_params(1, 8.5),
        "system": {
            "type": "string",
            "title": "Instructions",
            "description": "What the model is and how it works.",
            "x-ui": {"order": 7, "widget": "longtext", "rows": 4},
        },
        "prompt": {
            "title": "Prompt",
            "description": "What the model is asked.",
            "x-ui": {"order": 8, "widget": "longtext", "rows": 4},
        },
        "messages": {
            "title": "Messages",
            "description": "Earlier messages: a list of {role, content, files}, of user and assistant.",
            "x-ui": {"order": 9, "widget": "json", "advanced": True},
        },
        **memory_params(17),
        "tools": TOOLS | {"x-ui": {"order": 10, "widget": "list"}},
        "output_schema": {
            "type": "object",
            "title": "Output schema",
            "description": "JSON Schema of the answer, an object. Leave empty for text.",
            "x-weft": "literal",
            "x-ui": {"order": 11, "widget": "schema"},
        },
        "output_mode": {
            "type": "string",
            "title": "How the output is asked for",
            "description": "By the output format of the model, by a tool, or in words.",
            "enum": ["auto", "native", "tool", "prompted"],
            "default": "auto",
            "x-titles": {"auto": "Automatic", "native": "Output format", "tool": "Tool", "prompted": "Words"},
            "x-weft": "literal",
            "x-ui": {"order": 12, "widget": "select", "advanced": True},
        },
        "max_rounds": {
            "type": "integer",
            "title": "Maximum rounds",
            "description": "Calls of the model.",
            "minimum": 1,
            "maximum": 100,
            "default": ROUNDS,
            "x-ui": {"order": 13, "widget": "number", "advanced": True},
        },
        "max_tool_calls": {
            "type": "integer",
            "title": "Maximum tool calls",
            "description": "Of all tools together.",
            "minimum": 0,
            "maximum": 300,
            "default": TOOL_CALLS,
            "x-ui": {"order": 14, "widget": "number", "advanced": True},
        },
        "budget_tokens": {
            "type": "integer",
            "title": "Budget (tokens)",
            "description": "No call is made once this number of tokens is used.",
            "minimum": 1,
            "x-ui": {"order": 15, "widget": "number", "advanced": True},
        },
        "budget_usd": {
            "type": "number",
            "title": "Budget (US dollars)",
            "description": "No call is made once this is spent. The price of the model must be known.",
            "exclusiveMinimum": 0,
            "x-ui": {"order": 16, "widget": "number", "advanced": True},
        },
    },
}


def _check(params: Params) -> tuple[Finding, ...]:
    found: list[Finding] = []
    if all(params.get(name) in (None, "", []) for name in ("prompt", "messages")):
        found.append(Finding("required", "/prompt", "Prompt is required."))
    names: set[str] = set()
    tools = params.get("tools")
    for at, tool in enumerate(tools if isinstance(tools, list) else ()):
        if not isinstance(tool, dict):
            continue
        name = tool.get("name")
        if isinstance(name, str) and name in names:
            found.append(Finding("param_invalid", f"/tools/{at}/name", f'The tool "{name[:80]}" is listed twice.'))
        elif isinstance(name, str):
            names.add(name)
        kinds = [kind for kind in ("workflow", "block", "mcp") if tool.get(kind) not in (None, "", {})]
        if not kinds:
            message = "Workflow, block or MCP server is required."
            found.append(Finding("required", f"/tools/{at}/workflow", message))
        elif len(kinds) > 1:
            message = "A tool has one of workflow, block and MCP server."
            found.append(Finding("param_invalid", f"/tools/{at}/{kinds[1]}", message))
        if tool.get("approve") == "if" and tool.get("approve_if") in (None, ""):
            found.append(Finding("required", f"/tools/{at}/approve_if", "The condition of the approval is required."))
    schema = params.get("output_schema")
    if isinstance(schema, dict) and schema:
        problem = schema_error(orjson.dumps(schema))
        if problem is not None:
            found.append(Finding("param_invalid", "/output_schema", f"It is not a JSON Schema: {problem[:300]}"))
    return tuple(found)


def _output_from(params: Params) -> dict[str, Any]:
    schema = params.get("output_schema")
    calls = {
        "type": "object",
        "properties": {
            "tool": {"type": "string"},
            "arguments": {"type": "object"},
            "error": {"type": ["string", "null"]},
        },
    }
    return {
        "type": "object",
        "properties": {
            "content": schema if isinstance(schema, dict) and schema else {"type": "string"},
            "rounds": {"type": "integer"},
            "tool_calls": {"type": "array", "items": calls},
            **SPENT,
            **({"memory": MEMORY} if params.get("memory") not in (None, "") else {}),
        },
    }


class Agent:
    spec = BlockSpec(
        type="agent",
        title="Agent",
        description="A language model that answers, and calls tools to do so.",
        category="action",
        params=_PARAMS,
        check=_check,
        effect="write",
        idempotent=True,  # all that it does is in steps
        pauses=True,
        attempts=ATTEMPTS,
        timeout_ms=_TIMEOUT_MS,
        output_from=_output_from,
        sentence="{model}: {prompt} | Ask {model}",
        icon="agent",
    )

    async def run(self, ctx: Context) -> Done:
        """Output {"content", "rounds", "tool_calls", "model", "usage", "cost"}, and "memory" with one. Raises
        BlockError: params_invalid; output_invalid; limit_rounds, limit_tool_calls, budget_spent, cost_unknown; and
        those of ModelClient.reply and ToolClient."""
        return await _Run(ctx).run()


_Admitted = tuple[Tool, dict[str, Any]]  # the tool and its arguments


class _Run:
    """One entry of the handler."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._tools = read_tools(ctx.params.get("tools"))
        self._messages = _messages(ctx.params)
        self._memory = read_memory(ctx.params)
        self._question = next(message.text for message in reversed(self._messages) if message.role == "user")
        self._recalled = 0
        self._output = _output_spec(ctx.params)
        self._rounds = _limit(ctx.params, "max_rounds", ROUNDS)
        self._tool_calls = _limit(ctx.params, "max_tool_calls", TOOL_CALLS)
        self._spent = Spent()
        self._calls: list[dict[str, Any]] = []
        self._used: Counter[str] = Counter()
        self._between: str | None = None

    async def run(self) -> Done:
        await self._recall()
        self._tools = await with_servers(self._ctx, self._tools)
        repaired = False
        for round in range(1, self._rounds + 1):
            self._check_budget()
            reply = await self._ask()
            self._spent = self._spent.plus(reply)
            if reply.calls:
                self._messages.append(Message("assistant", reply.text, reply.calls))
                self._messages += await self._call(round, reply.calls)
                continue
            if self._output is None:
                return await self._done(reply.text, round)
            problems = await asyncio.to_thread(
                wrong, reply, self._output.schema, None, self._ctx.services.sandbox.matches
            )
            if not problems:
                return await self._done(reply.output, round)
            if repaired:
                message = f"the answer of {self._spent.model} does not match output_schema, twice: {problems[0]}"
                raise BlockError(message, code="output_invalid", retryable=False)
            repaired = True
            self._messages += repair(reply, problems)
        message = f"there is no answer after {self._rounds} rounds"
        raise BlockError(message, code="limit_rounds", retryable=False, hint="raise max_rounds")

    async def _done(self, content: Any, rounds: int) -> Done:
        output = {"content": content, "rounds": rounds, "tool_calls": self._calls, **self._spent.as_output()}
        if self._memory is not None:
            await self._remember(render(content))
            output["memory"] = {"key": self._memory.key, "scope": self._memory.scope, "messages": self._recalled}
        return Done(output)

    async def _recall(self) -> None:
        """Put the messages of earlier runs after the instructions. They are read in a step, so a later attempt gives
        the model the same ones."""
        memory, store = self._memory, self._ctx.memory
        if memory is None:
            return
        if store is None:
            raise invalid("this server cannot remember conversations")

        async def work() -> Any:
            return await store.recall(memory.scope, memory.key, memory.messages)

        asked = {"key": memory.key, "scope": memory.scope}
        found = memory.fitting(await self._ctx.step("step", "recall", asked, work, effect="read"))
        self._recalled = len(found)
        first = next(at for at, message in enumerate(self._messages) if message.role != "system")
        self._messages[first:first] = found

    async def _remember(self, answer: str) -> None:
        """Write the turn before the block ends, in a step that may be repeated: the turn is written once."""
        memory, store = self._memory, self._ctx.memory
        assert memory is not None and store is not None
        turn = turn_of(self._question, answer)

        async def work() -> Any:
            return await store.remember(memory.scope, memory.key, self._ctx.key, turn)

        asked = {"key": memory.key, "scope": memory.scope}
        await self._ctx.step("step", "remember", asked, work, effect="read")

    def _check_budget(self) -> None:
        """Raises BlockError if the budget is spent or cannot be checked. Called before each call of the model."""
        tokens = _budget(self._ctx.params, "integer", "budget_tokens")
        used = self._spent.usage.input_tokens + self._spent.usage.output_tokens
        if tokens is not None and used >= tokens:
            message = f"the budget of {tokens} tokens is spent: {used} are used"
            raise BlockError(message, code="budget_spent", retryable=False)
        usd = _budget(self._ctx.params, "number", "budget_usd")
        if usd is None or not self._spent.model:
            return
        if self._spent.cost is None:
            message = f"the price of {self._spent.model} is not known, so a budget in dollars cannot be kept"
            raise BlockError(message, code="cost_unknown", retryable=False, hint="set a budget in tokens")
        if nanos_of(self._spent.cost.usd) >= nanos_of(usd):
            message = f"the budget of {usd:g} dollars is spent: {self._spent.cost.usd:g} are used"
            raise BlockError(message, code="budget_spent", retryable=False)

    async def _ask(self) -> Reply:
        base = conversation_of(self._ctx, tuple(self._messages), self._output)
        conversation = Conversation(
            **{name: getattr(base, name) for name in base.__struct_fields__ if name != "tools"},
            tools=[tool.spec for tool in self._tools.values()],
        )
        self._between = "\n\n" if self._between is not None else ""
        return await reply_to(self._ctx, conversation, self._emit)

    def _emit(self, text: str) -> None:
        """Emit live text, with an empty line between the texts of two rounds."""
        self._ctx.emit(f"{self._between or ''}{text}")
        self._between = ""

    # --- tools ---

    async def _call(self, round: int, calls: tuple[ToolCall, ...]) -> list[Message]:
        """Return the results, in the order of the calls."""
        if len(self._calls) + len(calls) > self._tool_calls:
            message = f"the model wants more than {self._tool_calls} tool calls"
            raise BlockError(message, code="limit_tool_calls", retryable=False, hint="raise max_tool_calls")
        results: list[str | None] = [None] * len(calls)
        records = [{"tool": call.name, "arguments": call.arguments, "error": None} for call in calls]
        ready: list[tuple[int, Tool, dict[str, Any]]] = []
        for at, found in enumerate(await self._admit(calls)):
            if isinstance(found, str):
                results[at] = records[at]["error"] = found
            else:
                tool, arguments = found
                records[at]["arguments"] = arguments
                ready.append((at, tool, arguments))
        room = asyncio.Semaphore(PARALLEL)
        here = [(at, tool, arguments) for at, tool, arguments in ready if tool.workflow is None]
        # Each has its number once it is made, so this order is the same in each entry.
        steps = [self._run_here(tool, arguments, f"{round}.{at}", room) for at, tool, arguments in here]
        ended = await asyncio.gather(*steps, return_exceptions=True)
        for (at, _, _), end in zip(here, ended, strict=True):
            results[at], records[at]["error"] = _result(end)
        runs = [(at, tool, arguments) for at, tool, arguments in ready if tool.workflow is not None]
        waits = [self._run_workflow(tool, arguments) for _, tool, arguments in runs]
        ended = await asyncio.gather(*waits, return_exceptions=True)
        for (at, _, _), end in zip(runs, ended, strict=True):
            results[at], records[at]["error"] = _result(end)
        self._calls += records
        return [
            Message("tool", result or "", call_id=call.id, tool=call.name)
            for call, result in zip(calls, results, strict=True)
        ]

    async def _admit(self, calls: tuple[ToolCall, ...]) -> list[_Admitted | str]:
        """Return the tool and the arguments of each call, or the reason why it is not made. All approvals are requested
        at the same time."""
        found: list[_Admitted | str] = []
        asked: list[tuple[int, Any]] = []
        try:
            for at, call in enumerate(calls):
                found.append(admitted := self._checked(call))
                if isinstance(admitted, str) or not await needs_approval(self._ctx, *admitted):
                    continue
                tool, arguments = admitted
                # The number of its step is taken here, so the order is the same in each entry.
                asked.append((at, self._ctx.wait(question(self._ctx, tool, arguments), name=f"approve {tool.name}")))
        except BaseException:
            for _, wait in asked:
                wait.close()
            raise
        answers = await asyncio.gather(*(wait for _, wait in asked), return_exceptions=True)
        for (at, _), answer in zip(asked, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            admitted = found[at]
            assert not isinstance(admitted, str)
            found[at] = self._answered(*admitted, answer if isinstance(answer, dict) else {})
        return found

    def _checked(self, call: ToolCall) -> _Admitted | str:
        tool = self._tools.get(call.name)
        if tool is None:
            return f"Error: there is no tool {call.name[:80]}."
        if call.invalid is not None:
            return "Error: the arguments are not a JSON object."
        problem = problem_with(self._ctx, tool, call.arguments)
        if problem is not None:
            return f"Error: the arguments are not valid: {problem}"
        self._used[tool.entry] += 1
        if self._used[tool.entry] > tool.max_calls:
            return f"Error: {tool.entry} cannot be called more than {tool.max_calls} times."
        return tool, dict(call.arguments)

    def _answered(self, tool: Tool, arguments: dict[str, Any], answer: Mapping[str, Any]) -> _Admitted | str:
        """Return the call with a person's edits, or the message of its rejection."""
        if answer.get("action") != "approve":
            reason = render(answer.get("reason") or "")
            return f"Error: a person rejected this call. {reason}".strip()
        edited = {name: value for name, value in answer.items() if name in tool.editable}
        arguments = arguments | edited
        problem = problem_with(self._ctx, tool, arguments)
        return f"Error: the edited arguments are not valid: {problem}" if problem else (tool, arguments)

    def _run_here(self, tool: Tool, arguments: dict[str, Any], call: str, room: asyncio.Semaphore) -> Any:
        """Run a block, or a tool of an MCP server."""
        params = params_of(tool, arguments) if tool.block is not None else arguments

        async def work() -> Any:
            async with room:
                if tool.block is None:
                    return await call_remote(self._ctx, tool, arguments, call)
                return await call_block(self._ctx, tool, params, call)

        effect = cast(StepEffect, effect_of(tool, params))
        return self._ctx.step("tool", tool.name, arguments, work, effect=effect)

    def _run_workflow(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        async def make() -> Any:
            return await child_of(self._ctx, tool, arguments)

        return self._ctx.wait(make, name=tool.name)


def _result(end: Any) -> tuple[str, str | None]:
    """Return the text for the model and the error, if any. Raises errors that are not about the tool."""
    if isinstance(end, BlockError):
        return _told(end)
    if isinstance(end, BaseException):
        raise end
    return shown_result(end), None


def _told(error: BlockError) -> tuple[str, str]:
    if error.code in _OWN_ERRORS:
        raise error
    message = f"Error: {error.message}"
    return message, message


def _messages(params: Mapping[str, Any]) -> list[Message]:
    """Raises BlockError(params_invalid)."""
    found: list[Message] = []
    if (system := text(params, "system")) is not None:
        found.append(Message("system", system))
    listed = params.get("messages")
    if listed not in (None, "", []) and not isinstance(listed, list):
        raise invalid("messages must be a list of {role, content}")
    for item in listed or ():
        role = item.get("role") if isinstance(item, dict) else None
        if role not in ("system", "user", "assistant"):
            raise invalid("each message must have a role: system, user or assistant")
        files = file_ids(item.get("files"), "files of a message")
        if files and role != "user":
            raise invalid("only messages of the user can have files")
        found.append(Message(role, render(item.get("content")), files=files))
    if params.get("prompt") not in (None, ""):
        found.append(Message("user", render(params["prompt"])))
    if not any(message.role == "user" for message in found):
        raise invalid("prompt is required")
    return with_files(found, params)


def _output_spec(params: Mapping[str, Any]) -> OutputSpec | None:
    schema = params.get("output_schema")
    if not schema:
        return None
    if not isinstance(schema, dict):
        raise invalid("output_schema must be a JSON Schema")
    mode = text(params, "output_mode") or "auto"
    if mode not in ("auto", "native", "tool", "prompted"):
        raise invalid("output_mode must be auto, native, tool or prompted")
    return OutputSpec({"type": "object", **schema}, cast(OutputMode, mode))


def _limit(params: Mapping[str, Any], name: str, default: int) -> int:
    value = coerce("integer", params.get(name))
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid(f"{name} must be a whole number")
    return value


def _budget(params: Mapping[str, Any], kind: Literal["integer", "number"], name: str) -> float | None:
    """Return a budget, or None if there is none. Raises BlockError(params_invalid) for an unreadable value: it must not
    mean that there is no budget."""
    value = coerce(kind, params.get(name))
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float) or value <= 0:
        raise invalid(f"{name} must be a {'whole ' if kind == 'integer' else ''}number above 0")
    return cast(float, value)


block = Agent()

"""`agent`: a language model that calls tools until it has an answer. The loop is weft's, and each call of the model and
of a tool is a step, so a finished call is never repeated or paid for again. Approvals and runs take no memory.

The handler is entered again after its waits and after each crash, and makes the same calls in the same order: first the
lists of tools of MCP servers; then the model, and an approval for each of its tool calls that needs one; when all of
these are answered, the blocks and the tools of MCP servers side by side, then the runs side by side.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, cast

from msgspec.json import decode

from compiler.catalog import BlockSpec
from executor.blocks.llm.base import Message, OutputMode, OutputSpec, Reply, ToolCall
from executor.blocks.services import services_of
from executor.blocks.types.agent.calls import (
    call_block,
    call_step,
    child_of,
    effect_of,
    needs_approval,
    params_of,
    problem_with,
    question,
    shown_result,
)
from executor.blocks.types.agent.handoffs import FIRST, agents_of, transfers_of
from executor.blocks.types.agent.memory import read_memory, turn_of
from executor.blocks.types.agent.params import AgentParams, check, output_from
from executor.blocks.types.agent.servers import call_remote, with_servers
from executor.blocks.types.agent.tools import MAX_CALLS, Tool, read_tools
from executor.blocks.types.asking import ATTEMPTS, Spent, conversation_of, file_ids, repair, reply_to, with_files, wrong
from executor.blocks.types.params import invalid, lacking_function, listed
from executor.blocks.types.python import Python
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.money import nanos_of
from executor.kernel.values.payload import render

PARALLEL: Final = 4
_TIMEOUT_MS = 30 * 60_000
# These errors end the attempt and are not returned to the model: the cause is the handler or the author, not this call.
_OWN_ERRORS: Final = frozenset(
    {"attempt_over", "limit_steps", "step_nested", "steps_changed", "steps_not_available", "workflow_not_found"}
)


class AgentBlock:
    """`python`: the functions that tools may be, if this process has any."""

    def __init__(self, python: Python | None = None) -> None:
        self._python = python
        self.spec = BlockSpec(
            type="agent",
            title="Agent",
            description="A language model that answers, and calls tools to do so.",
            category="action",
            params=AgentParams.json_schema,
            check=partial(check, self._names),
            effect="write",
            idempotent=True,  # all that it does is in steps
            pauses=True,
            attempts=ATTEMPTS,
            timeout_ms=_TIMEOUT_MS,
            output_from=output_from,
            sentence="{model}: {prompt} | Ask {model}",
            icon="agent",
        )

    @property
    def _names(self) -> list[str]:
        return [] if self._python is None else self._python.names

    def lacks(self, params: dict[str, Any]) -> str | None:
        """See `executor.kernel.worker.missing`."""
        found = (lacking_function("Python function", tool, self._names) for _, tool in listed(params.get("tools")))
        return next((what for what in found if what is not None), None)

    async def run(self, ctx: StepContext) -> Done:
        """Output {"content", "rounds", "tool_calls", "model", "usage", "cost"}, and "memory" with one. With handoffs
        "agent" is the one that answered. Raises BlockError: params_invalid; output_invalid; limit_rounds,
        limit_tool_calls, budget_spent, cost_unknown; and those of ModelClient.reply and ToolClient."""
        written = decode(ctx.own.node.params).get("tools")
        tools = read_tools(ctx.params.get("tools"), services_of(ctx).registry, written, self._python)
        return await Talk(ctx, tools).run()


block = AgentBlock()
Judge = Callable[[Reply, Mapping[str, Any]], Awaitable[Sequence[str]]]
_Admitted = tuple[Tool, dict[str, Any]]  # the tool and its arguments


class Talk:
    """One run of an agent with these tools. `ctx` makes its steps and waits. `judge` returns the problems of an answer;
    without it, those by the schema. `around` is entered for the calls of an agent that continued, with its name.
    `child` gets each wait for a child run when it is made, and returns what is awaited."""

    def __init__(
        self,
        ctx: StepContext,
        tools: Mapping[str, Tool],
        judge: Judge | None = None,
        around: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
        child: Callable[[Any], Any] = lambda wait: wait,
    ) -> None:
        self._ctx = ctx
        self._judge = judge or self._by_schema
        self._around = around
        self._child = child
        self._agents = {name: AgentParams(given) for name, given in agents_of(ctx.params).items()}
        self._transfers = transfers_of(ctx.params)
        self._agent = FIRST
        self._params = params = self._agents[FIRST]
        self._tools = tools
        self._messages = _messages(params)
        self._memory = read_memory(ctx.params)
        self._question = next(message.text for message in reversed(self._messages) if message.role == "user")
        self._recalled = 0
        self._output = _output_spec(params)
        self._spent = Spent()
        self._calls: list[dict[str, Any]] = []
        self._used: Counter[str] = Counter()
        self._between = ""

    async def run(self) -> Done:
        await self._recall()
        self._tools = await with_servers(self._ctx, self._tools)
        repaired = False
        for round in range(1, self._params.max_rounds + 1):
            self._check_budget()
            with nullcontext() if self._agent == FIRST else self._around(self._agent):
                reply = await self._ask()
                self._spent = self._spent.plus(reply)
                if reply.calls:
                    self._messages.append(Message("assistant", reply.text, reply.calls))
                    self._messages += await self._call(round, reply.calls)
                    continue
            if self._output is None:
                return await self._done(reply.text, round)
            problems = await self._judge(reply, self._output.schema)
            if not problems:
                return await self._done(reply.output, round)
            if repaired:
                message = f"the answer of {self._spent.model} does not match output_schema, twice: {problems[0]}"
                raise BlockError(message, code="output_invalid", retryable=False)
            repaired = True
            self._messages += repair(reply, problems)
        message = f"there is no answer after {self._params.max_rounds} rounds"
        raise BlockError(message, code="limit_rounds", retryable=False, hint="raise max_rounds")

    async def _by_schema(self, reply: Reply, schema: Mapping[str, Any]) -> Sequence[str]:
        return await asyncio.to_thread(wrong, reply, schema, None, self._ctx.services.sandbox.matches)

    async def _done(self, content: Any, rounds: int) -> Done:
        output = {"content": content, "rounds": rounds, "tool_calls": self._calls, **self._named()}
        output |= self._spent.as_output()
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
        assert memory is not None
        turn = turn_of(self._question, answer)

        async def work() -> Any:
            return await store.remember(memory.scope, memory.key, self._ctx.key, turn)

        asked = {"key": memory.key, "scope": memory.scope}
        await self._ctx.step("step", "remember", asked, work, effect="read")

    def _check_budget(self) -> None:
        """Raises BlockError if the budget is spent or cannot be checked. Called before each call of the model."""
        tokens, usd = self._params.budget_tokens, self._params.budget_usd
        used = self._spent.usage.input_tokens + self._spent.usage.output_tokens
        if tokens is not None and used >= tokens:
            message = f"the budget of {tokens} tokens is spent: {used} are used"
            raise BlockError(message, code="budget_spent", retryable=False)
        if usd is None or not self._spent.model:
            return
        if self._spent.cost is None:
            message = f"the price of {self._spent.model} is not known, so a budget in dollars cannot be kept"
            raise BlockError(message, code="cost_unknown", retryable=False, hint="set a budget in tokens")
        if nanos_of(self._spent.cost.usd) >= nanos_of(usd):
            message = f"the budget of {usd:g} dollars is spent: {self._spent.cost.usd:g} are used"
            raise BlockError(message, code="budget_spent", retryable=False)

    async def _ask(self) -> Reply:
        params, tools = self._agents[self._agent], [tool.spec for tool in self._offered().values()]
        messages = self._messages
        if self._agent != FIRST:
            own = [] if params.system is None else [Message("system", params.system)]
            messages = own + messages[self._params.system is not None :]
        conversation = conversation_of(self._ctx, params, tuple(messages), self._output, tools)
        reply = await reply_to(self._ctx, params, conversation, self._emit)
        self._between = "\n\n" if reply.text else self._between
        return reply

    def _emit(self, text: str) -> None:
        """Emit live text, with an empty line between the texts of two rounds."""
        self._ctx.emit(f"{self._between}{text}")
        self._between = ""

    # --- tools ---

    def _offered(self) -> dict[str, Tool]:
        """Return the tools of the agent that has the conversation."""
        own = {name: tool for name, tool in self._tools.items() if self._agent in (tool.given.agents or [self._agent])}
        return own | {tool.name: tool for name, tool in self._transfers.items() if name != self._agent}

    def _named(self) -> dict[str, str]:
        return {"agent": self._agent} if self._transfers else {}

    async def _call(self, round: int, calls: tuple[ToolCall, ...]) -> list[Message]:
        """Return the results, in the order of the calls."""
        if len(self._calls) + len(calls) > self._params.max_tool_calls:
            message = f"the model wants more than {self._params.max_tool_calls} tool calls"
            raise BlockError(message, code="limit_tool_calls", retryable=False, hint="raise max_tool_calls")
        results: list[str | None] = [None] * len(calls)
        records = [{"tool": call.name, "arguments": call.arguments, "error": None, **self._named()} for call in calls]
        ready: list[tuple[int, Tool, dict[str, Any]]] = []
        next_agent = None
        for at, found in enumerate(await self._admit(calls)):
            if isinstance(found, str):
                results[at] = records[at]["error"] = found
            else:
                tool, arguments = found
                records[at]["arguments"] = arguments
                if tool.handoff is not None and next_agent is not None:
                    results[at] = records[at]["error"] = f"Error: it is handed over to {next_agent} already."
                    continue
                next_agent = tool.handoff or next_agent
                ready.append((at, tool, arguments))
        room = asyncio.Semaphore(PARALLEL)
        here = [(at, tool, arguments) for at, tool, arguments in ready if tool.given.workflow is None]
        # Each has its number once it is made, so this order is the same in each entry.
        steps = [self._run_here(tool, arguments, f"{round}.{at}", room) for at, tool, arguments in here]
        ended = await asyncio.gather(*steps, return_exceptions=True)
        for (at, _, _), end in zip(here, ended, strict=True):
            results[at], records[at]["error"] = _result(end)
        runs = [(at, tool, arguments) for at, tool, arguments in ready if tool.given.workflow is not None]
        waits = [self._run_workflow(tool, arguments) for _, tool, arguments in runs]
        ended = await asyncio.gather(*waits, return_exceptions=True)
        for (at, _, _), end in zip(runs, ended, strict=True):
            results[at], records[at]["error"] = _result(end)
        self._calls += records
        self._agent = next_agent or self._agent
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
                wait.cancel() if isinstance(wait, asyncio.Future) else wait.close()
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
        tool = self._offered().get(call.name)
        if tool is None:
            return f"Error: there is no tool {call.name[:80]}."
        if call.invalid is not None:
            return "Error: the arguments are not a JSON object."
        problem = problem_with(self._ctx, tool, call.arguments)
        if problem is not None:
            return f"Error: the arguments are not valid: {problem}"
        self._used[tool.given.name] += 1
        most = tool.given.max_calls or MAX_CALLS
        if self._used[tool.given.name] > most:
            return f"Error: {tool.given.name} cannot be called more than {most} times."
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
        """Run a block, a function, or a tool of an MCP server."""
        params = params_of(tool, arguments) if tool.block is not None else arguments

        async def work() -> Any:
            if tool.handoff is not None:
                return f"The conversation is handed over to {tool.handoff}."
            async with room:
                if tool.block is None:
                    return await call_remote(self._ctx, tool, arguments, call)
                if tool.step is not None:
                    return await call_step(self._ctx, tool, tool.step, params, call)
                return await call_block(self._ctx, tool.block, params, call)

        return self._ctx.step("tool", tool.name, arguments, work, effect=effect_of(tool, params))

    def _run_workflow(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        async def make() -> Any:
            return await child_of(self._ctx, tool, arguments)

        return self._child(self._ctx.wait(make, name=tool.name))


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


def _messages(params: AgentParams) -> list[Message]:
    """Raises BlockError(params_invalid)."""
    found: list[Message] = []
    if params.system is not None:
        found.append(Message("system", params.system))
    listed = params.messages
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
    if params.prompt not in (None, ""):
        found.append(Message("user", render(params.prompt)))
    if not any(message.role == "user" for message in found):
        raise invalid("prompt is required")
    return with_files(found, params.files)


def _output_spec(params: AgentParams) -> OutputSpec | None:
    if not params.output_schema:
        return None
    return OutputSpec({"type": "object", **params.output_schema}, cast(OutputMode, params.output_mode))

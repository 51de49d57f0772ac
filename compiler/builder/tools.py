"""Tools of agents in Python: steps, workflows, and what a document can say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeGuard

from msgspec import UNSET, Struct, UnsetType

from compiler.builder.errors import BuildError

Approve = Literal["never", "always", "write", "if"]


class IsTool(Protocol):
    """A step or a workflow: what an agent can call."""

    def as_tool(self) -> dict[str, Any]:
        """Return the tool as documents have it: its name, and what is called. Raises BuildError."""


class Tool(Struct, frozen=True):
    """A step or a workflow as a tool, with options of its own. Made by `weft.tool`."""

    of: IsTool
    options: dict[str, Any]

    def as_tool(self) -> dict[str, Any]:
        return self.of.as_tool() | self.options


def tool(
    of: IsTool,
    /,
    *,
    name: str | UnsetType = UNSET,
    description: str | UnsetType = UNSET,
    approve: bool | Approve | UnsetType = UNSET,
    approve_if: str | UnsetType = UNSET,
    by: Sequence[str] | UnsetType = UNSET,
    max_calls: int | UnsetType = UNSET,
) -> Tool:
    """Return a step or a workflow as a tool of an agent, with options: `weft.tool(publish, approve=True)`.

    name         what the model calls it by; that of the function without it
    description  what it does and when to use it; the docstring without it
    approve      True: a person decides about each call
    approve_if   a JavaScript expression: a person decides if it holds. The arguments are in args. For a condition in
                 Python see `approve` of `weft.step`
    by           who may decide
    max_calls    of one run of the agent; further ones are refused, and the model is informed
    """
    given = {"name": name, "description": description, "approve": approve, "approve_if": approve_if, "by": by}
    options = {key: value for key, value in {**given, "max_calls": max_calls}.items() if value is not UNSET}
    if isinstance(approve, bool):
        options["approve"] = "always" if approve else "never"
    if approve_if is not UNSET:
        options.setdefault("approve", "if")
    return Tool(of, options)


class Handoff(Struct, frozen=True):
    """Another agent that can continue a conversation. Made by `weft.handoff`."""

    name: str
    params: dict[str, Any]
    tools: Sequence[Any]


def handoff(
    name: str,
    /,
    description: str,
    *,
    model: str | UnsetType = UNSET,
    system: str | UnsetType = UNSET,
    connection: str | UnsetType = UNSET,
    tools: Sequence[IsTool | Mapping[str, Any]] = (),
) -> Handoff:
    """Return another agent, to which an agent can hand the conversation over:
    `weft.agent(…, handoffs=[weft.handoff("billing", "Invoices and refunds.", tools=[refund])])`. The model does so by
    the tool `transfer_to_billing`; the other agent then has all messages and calls so far, and can hand it on or back.

    name         of the agent
    description  what it knows, and when to hand over to it
    model        that of the first agent without it; with `connection` the credential of its server
    system       its instructions, in the place of those of the first agent
    tools        its own; those of the first agent are not its tools unless they are here too

    Rounds, calls, budgets, memory and the type of the answer are those of the first agent, for all together."""
    given = {"name": name, "description": description, "model": model, "system": system, "connection": connection}
    return Handoff(name, {key: value for key, value in given.items() if value is not UNSET}, tools)


def team(tools: Sequence[Any], handoffs: Sequence[Handoff]) -> list[Any]:
    """Return the tools of all agents, each with the names of those that have it."""
    if not handoffs:
        return list(tools)
    found: list[tuple[Any, list[str]]] = []
    for name, own in (("first", tools), *((one.name, one.tools) for one in handoffs)):
        for one in own:
            agents = next((agents for known, agents in found if known is one), None)
            found.append((one, [name])) if agents is None else agents.append(name)
    return [_tool_of(one, agents) for one, agents in found]


def _tool_of(one: Any, agents: list[str]) -> Any:
    if isinstance(one, Tool):
        return Tool(one.of, one.options | {"agents": agents})
    if is_tool(one):
        return Tool(one, {"agents": agents})
    return {**one, "agents": agents} if isinstance(one, Mapping) else one


def entries(tools: Sequence[Any]) -> list[Any]:
    """Return the tools as documents have them. Raises BuildError."""
    return [_entry(one) for one in tools]


def _entry(given: Any) -> Any:
    if is_tool(given):
        return given.as_tool()
    if isinstance(given, Mapping):
        return given
    name = getattr(given, "__name__", type(given).__name__)
    hint = f"Put @weft.step before {name}." if callable(given) else ""
    raise BuildError(f"{name} cannot be a tool: tools are steps, workflows, and those of documents.", hint)


def is_tool(given: Any) -> TypeGuard[IsTool]:
    return hasattr(type(given), "as_tool")  # of the type: values of workflow functions have any attribute


def called(tools: Sequence[Any]) -> Iterator[Any]:
    """Yield the steps and workflows among these."""
    for one in tools:
        found = one.of if isinstance(one, Tool) else one
        if is_tool(found):
            yield found

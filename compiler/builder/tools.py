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

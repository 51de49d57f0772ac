"""Handoffs of an agent: other agents that continue the conversation, with all calls so far. Each is a tool,
`transfer_to_NAME`, of every other one, and of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from compiler.catalog import Finding, Params
from compiler.diagnostics import suggest
from executor.blocks.types.agent.tools import Tool, ToolParams
from executor.blocks.types.connected import CONNECTION
from executor.blocks.types.params import TypedParams, changed, invalid, listed, param, repeated
from executor.errors import BlockError

FIRST: Final = "first"  # the agent that begins
TRANSFER: Final = "transfer_to_"
_REASON: Final[dict[str, Any]] = {"type": "object", "properties": {"reason": {"type": "string"}}}
_OWN: Final = ("model", "system", "connection")  # what is its own; all else is that of the first


class HandoffParams(TypedParams):
    name: str = param(
        "Name",
        "Of the agent. The tool is transfer_to_ with this name.",
        required=True,
        weft="literal",
        pattern="^[A-Za-z_][A-Za-z0-9_-]{0,49}$",
    )
    description: str | None = param(
        "Description", "What it knows, and when to hand over to it.", widget="longtext", rows=2
    )
    model: str | None = param("Model", "Leave empty to use that of the first agent.")
    system: str | None = param("Instructions", "In the place of those of the first agent.", widget="longtext", rows=4)
    connection: str | None = changed(CONNECTION, order=5)


def agents_of(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the params of each agent by its name, the first one first. Raises BlockError(params_invalid)."""
    handoffs = params.get("handoffs") or []
    if not isinstance(handoffs, list):
        raise invalid("handoffs must be a list")
    first = {name: value for name, value in params.items() if name not in ("tools", "handoffs")}
    agents = {FIRST: first}
    for item in handoffs:
        if not isinstance(item, dict):
            raise invalid("each handoff must be an object with a name")
        try:
            one = HandoffParams(item)
        except BlockError as error:
            raise invalid(f"the handoff {str(item.get('name'))[:80]}: {error.message}", hint=error.hint) from None
        if one.name in agents:
            raise invalid(f"the agent {one.name} is listed twice")
        own = {name: value for name in _OWN if (value := getattr(one, name)) is not None}
        kept = {name: value for name, value in first.items() if name != "system"}
        if "connection" in own or _endpoint(one.model or first.get("model")) != _endpoint(first.get("model")):
            kept = {name: value for name, value in kept.items() if name not in ("connection", "api_key")}
        agents[one.name] = kept | own
    return agents


def transfers_of(params: Mapping[str, Any]) -> dict[str, Tool]:
    """Return the tool that hands over to each agent, by the name of the agent; none without handoffs."""
    given = [HandoffParams(item) for item in params.get("handoffs") or []]
    about = {FIRST: "the agent that began"} | {one.name: one.description or "" for one in given}
    found = {}
    for name, text in about.items() if given else ():
        tool, description = f"{TRANSFER}{name}", f"Hand the conversation over to the agent {name}. {text}".strip()
        found[name] = Tool(tool, description, _REASON, ToolParams({"name": tool}), handoff=name)
    return found


def check_handoffs(params: Params) -> Iterator[Finding]:
    names = [FIRST, *(str(one.get("name")) for _, one in listed(params.get("handoffs")))]
    yield from repeated(params, "handoffs", "name", "agent")
    for at, name in enumerate(names[1:]):
        if name == FIRST:
            yield Finding("param_invalid", f"/handoffs/{at}/name", f"{FIRST} is the name of the agent that begins.")
    for at, tool in listed(params.get("tools")):
        if len(names) > 1 and tool.get("name") in {f"{TRANSFER}{name}" for name in names}:
            message = f"{tool['name']} is the tool of a handoff."
            yield Finding("param_invalid", f"/tools/{at}/name", message, "Give the tool another name.")
        agents = tool.get("agents")
        for place, name in enumerate(agents if isinstance(agents, list) else ()):
            if name not in names:
                message = f"There is no agent {str(name)[:80]!r} in handoffs."
                yield Finding("param_invalid", f"/tools/{at}/agents/{place}", message, suggest(str(name), names))


def _endpoint(model: Any) -> str:
    return str(model).partition(":")[0].strip().lower()

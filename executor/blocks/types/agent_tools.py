"""The tools of an agent: a stored workflow, a block whose params the model fills in where the author allows it, or
those of an MCP server (`agent_mcp`).

In the params of a block `{{name}}` is the argument of that name: its value if the text is nothing else, its text inside
of another one. It is encoded for that text: in a URL it is one part of a path or of a query and nothing more, in JSON
it stays in its string (`executor.kernel.values.places`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from compiler.catalog import may_repeat
from executor.blocks.http.binding import using
from executor.blocks.llm.base import ToolSpec
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.blocks.types import email, http
from executor.blocks.types.agent_condition import is_asked
from executor.blocks.types.connected import CONNECTION
from executor.blocks.types.response import header_texts
from executor.blocks.types.shared_params import FILLED, SENT_HEADERS, form_schema, invalid, seconds, text
from executor.errors import BadRequest, BlockError
from executor.kernel.handler.base import Block, ChildRequest, Context, Done, Suspend
from executor.kernel.values.bound import Bound
from executor.kernel.values.coerce import coerce
from executor.kernel.values.payload import render
from executor.kernel.values.places import fill, form_of
from executor.kernel.values.schema import violations

BLOCKS: Final[dict[str, Block]] = {"http": http.block, "email": email.block}
NAME: Final = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
RESULT_MAX: Final = 256 * 1024  # characters of a result that the model gets
ANSWERED: Final = ("action", "answered_at", "answered_by", "reason")  # fields of an answer; no arguments
MAX_CALLS: Final = 1000
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
_ANYTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}

_TIMEOUT_S: Final = 60
_TIMEOUT_MAX_S: Final = 600
_SESSION_OWN: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host",
     "keep-alive", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}
)  # fmt: skip

MCP: dict[str, Any] = {
    "type": "object",
    "title": "MCP server",
    "description": "A server of tools instead of a workflow or a block, over streamable HTTP.",
    "required": ["url"],
    "additionalProperties": False,
    "properties": {
        "url": {
            **FILLED,
            "title": "URL",
            "description": "Starts with http:// or https://",
            "x-ui": {"order": 1, "widget": "text"},
        },
        "headers": {
            **SENT_HEADERS,
            "description": "Use ${NAME} for secrets.",
            "x-ui": {"order": 2, "widget": "keyvalues"},
        },
        "connection": {**CONNECTION, "x-ui": {"order": 1.5, "widget": "connection"}},
        "tools": {
            "type": "array",
            "title": "Only these tools",
            "description": "As the server calls them. Leave empty to offer all of them to the model.",
            "items": {"type": "string", "minLength": 1, "maxLength": 128},
            "maxItems": 100,
            "x-weft": "literal",
            "x-ui": {"order": 3, "widget": "list"},
        },
        "timeout_s": {
            "type": "number",
            "title": "Timeout (seconds)",
            "description": "For each call.",
            "exclusiveMinimum": 0,
            "maximum": _TIMEOUT_MAX_S,
            "default": _TIMEOUT_S,
            "x-ui": {"order": 4, "widget": "number", "advanced": True},
        },
    },
    "x-ui": {"order": 6, "widget": "tool_server"},
}

TOOLS: dict[str, Any] = {
    "type": "array",
    "title": "Tools",
    "description": "What the model may call.",
    "maxItems": 50,
    "items": {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": {
                "type": "string",
                "title": "Name",
                "description": "What the model calls it by: letters, digits, _ and -. The names of the tools of an MCP "
                "server begin with it.",
                "pattern": NAME,
                "x-weft": "literal",
                "x-ui": {"order": 1, "widget": "text"},
            },
            "description": {
                "type": "string",
                "title": "Description",
                "description": "What it does and when to use it.",
                "x-ui": {"order": 2, "widget": "longtext", "rows": 2},
            },
            "workflow": {
                "type": "string",
                "title": "Workflow",
                "description": "Name of the workflow to run. The arguments are its input.",
                "maxLength": 200,
                "x-ui": {"order": 3, "widget": "workflow"},
            },
            "version": {
                "type": "integer",
                "title": "Version",
                "description": "Of the workflow. Leave empty to use the active one.",
                "minimum": 1,
                "maximum": 2**31,
                "x-ui": {"order": 4, "widget": "number", "advanced": True},
            },
            "block": {
                "type": "string",
                "title": "Block",
                "description": "A block type instead of a workflow.",
                "enum": list(BLOCKS),
                "x-titles": {kind: block.spec.title for kind, block in BLOCKS.items()},
                "x-weft": "literal",
                "x-ui": {"order": 5, "widget": "select"},
            },
            "mcp": MCP,
            "params": {
                "type": "object",
                "x-weft": "secret",
                "x-url": ["url"],
                "x-secret-when": {"block": ["http"]},  # a mail goes to servers outside the hosts of a secret
                "title": "Parameters of the block",
                "description": "{{name}} stands for the argument of that name.",
                "x-ui": {"order": 7, "widget": "json", "rows": 5},
            },
            "arguments": {
                "type": "object",
                "title": "Arguments",
                "description": "What the model fills in.",
                "x-weft": "literal",
                "x-ui": {"order": 8, "widget": "schema"},
            },
            "approve": {
                "type": "string",
                "title": "Approval",
                "description": "Who decides about a call.",
                "enum": ["never", "always", "write", "if"],
                "default": "never",
                "x-titles": {
                    "never": "No one is asked",
                    "always": "A person decides",
                    "write": "A person decides about changes",
                    "if": "A person decides if",
                },
                "x-weft": "literal",
                "x-ui": {"order": 9, "widget": "select"},
            },
            "approve_if": {
                "type": ["string", "boolean"],
                "title": "A person decides if",
                "description": "A JavaScript expression. The arguments are in args.",
                "x-weft": "expression",
                "x-when": {"approve": ["if"]},
                "x-ui": {"order": 10, "widget": "code", "rows": 1},
            },
            "on_lost": {
                "type": "string",
                "title": "If the process ends during a call",
                "description": "A call that only reads, or that the service recognizes, is repeated in any case.",
                "enum": ["ask", "retry"],
                "default": "ask",
                "x-titles": {"ask": "A person decides", "retry": "Call again"},
                "x-weft": "literal",
                "x-ui": {"order": 12, "widget": "select", "advanced": True},
            },
            "max_calls": {
                "type": "integer",
                "title": "Maximum calls",
                "description": "Further calls are refused, and the model is informed.",
                "minimum": 1,
                "maximum": MAX_CALLS,
                "x-ui": {"order": 11, "widget": "number", "advanced": True},
            },
        },
    },
    "x-ui": {"order": 6, "widget": "list"},
}


class Tool(Struct, frozen=True):
    """A tool, read from the params. `approve_if`: the condition if `approve` is `if`. `server`: the MCP server that has
    it, as `remote`; without `remote` it stands for all tools of that server, or those in `only`. `entry`: its name in
    the list of the author, whose calls `max_calls` bounds. `connection`: the connection whose credential the server
    gets."""

    name: str
    description: str
    schema: dict[str, Any]
    workflow: str | None
    version: int | None
    block: str | None
    params: dict[str, Any]
    approve: str
    approve_if: Any
    max_calls: int
    server: ToolServer | None = None
    only: tuple[str, ...] = ()
    remote: ServerTool | None = None
    entry: str = ""
    connection: str | None = None
    on_lost: str = "ask"

    @property
    def spec(self) -> ToolSpec:
        called = self.remote.name if self.remote is not None else self.workflow or self.block
        return ToolSpec(self.name, self.description or f"Calls {called}.", self.schema)

    @property
    def editable(self) -> dict[str, Any]:
        """The arguments that a person may edit, by name. An argument of an MCP tool can be called as a part of an
        answer is; it remains as it is then."""
        fields = self.schema.get("properties") or {}
        return {name: field for name, field in fields.items() if name not in ANSWERED}


def read_tools(listed: Any) -> dict[str, Tool]:
    """Return the listed tools by name. Raises BlockError(params_invalid)."""
    if listed in (None, ""):
        return {}
    if not isinstance(listed, list):
        raise invalid("tools must be a list")
    tools: dict[str, Tool] = {}
    for item in listed:
        tool = _tool(item)
        if tool.name in tools:
            raise invalid(f"the tool {tool.name} is listed twice")
        tools[tool.name] = tool
    return tools


def _tool(item: Any) -> Tool:
    name = text(item, "name") if isinstance(item, dict) else None
    if name is None or re.fullmatch(NAME, name) is None:
        raise invalid("each tool must have a name of letters, digits, _ and -")
    workflow, block, server = text(item, "workflow"), text(item, "block"), item.get("mcp") or None
    if sum(kind is not None for kind in (workflow, block, server)) != 1:
        raise invalid(f"the tool {name} must have a workflow, a block or an MCP server")
    if block is not None and block not in BLOCKS:
        raise invalid(f"a block of type {block[:40]!r} cannot be a tool", hint=f"possible are {', '.join(BLOCKS)}")
    schema: dict[str, Any] = form_schema(item.get("arguments")) or _ANYTHING
    taken = [name for name in ANSWERED if name in (schema.get("properties") or {})]
    if taken:
        raise invalid(f"an argument of the tool {name} cannot be called {taken[0]}")
    params = item.get("params") or {}
    if not isinstance(params, dict):
        raise invalid(f"params of the tool {name} must be an object")
    approve = text(item, "approve") or "never"
    if approve not in ("never", "always", "write", "if"):
        raise invalid(f"approve of the tool {name} must be never, always, write or if")
    if approve == "if" and item.get("approve_if") in (None, ""):
        raise invalid(f"approve_if of the tool {name} is required")  # without it no call would need approval
    on_lost = text(item, "on_lost") or "ask"
    if on_lost not in ("ask", "retry"):
        raise invalid(f"on_lost of the tool {name} must be ask or retry")
    return Tool(
        name,
        text(item, "description") or "",
        schema,
        workflow,
        _whole(item, "version", 2**31),
        block,
        params,
        approve,
        item.get("approve_if"),
        _whole(item, "max_calls", MAX_CALLS) or MAX_CALLS,
        None if server is None else tool_server(server, f"mcp of the tool {name}"),
        () if server is None else _only(name, server.get("tools")),
        entry=name,
        connection=None if server is None else text(server, "connection"),
        on_lost=on_lost,
    )


def tool_server(given: Any, what: str) -> ToolServer:
    """Read the param `mcp`; `what` names it in messages. Raises BlockError(params_invalid)."""
    url = text(given, "url") if isinstance(given, dict) else None
    if url is None:
        raise invalid(f"{what} must have a url")
    headers = session_headers(given.get("headers"))
    return ToolServer(url, headers, min(seconds(given, "timeout_s", _TIMEOUT_S) or _TIMEOUT_S, _TIMEOUT_MAX_S))


def session_headers(given: Any) -> dict[str, str]:
    """Return the headers for all requests of a session. Raises BlockError(params_invalid)."""
    headers = header_texts(given, _SESSION_OWN)
    taken = next((header for header in headers if header.lower().startswith("mcp-")), None)
    if taken is not None:
        raise invalid(f"header {taken!r} is set by weft itself")
    return headers


def _only(name: str, listed: Any) -> tuple[str, ...]:
    if listed in (None, ""):
        return ()
    if not isinstance(listed, list) or not all(isinstance(tool, str) and tool for tool in listed):
        raise invalid(f"mcp.tools of the tool {name} must be a list of names")
    return tuple(dict.fromkeys(listed))


def _whole(item: Mapping[str, Any], name: str, most: int) -> int | None:
    number = coerce("integer", item.get(name))
    if number is None or number == "":
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise invalid(f"{name} must be a whole number from 1 to {most}")
    return number


def problem_with(ctx: Context, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with these arguments, or None. Raises BlockError(params_invalid) if the schema is not
    valid."""
    try:
        found = violations(tool.schema, arguments, ctx.services.sandbox.matches)
    except BadRequest as error:
        raise BlockError(error.message, code="params_invalid", retryable=False, hint=error.hint) from error
    return "; ".join(f"{problem['pointer'] or 'arguments'}: {problem['message']}" for problem in found[:5]) or None


async def needs_approval(ctx: Context, tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Return True if a person must approve this call. An expression is evaluated in a step, so only once."""
    if tool.approve == "write":
        if tool.remote is not None:
            return not tool.remote.reads
        return tool.block is None or _writes(tool.block, params_of(tool, arguments))
    if tool.approve != "if":
        return tool.approve == "always"
    condition = tool.approve_if
    if not isinstance(condition, Bound):
        return condition not in (None, "", False)

    async def work() -> bool:
        return await is_asked(ctx, condition, tool.schema, arguments)

    return bool(await ctx.step("step", f"approve {tool.name}?", arguments, work, effect="none"))


def _writes(block: str, params: Mapping[str, Any]) -> bool:
    """Return True if this call changes something outside. A run counts as such, because its effects are not known."""
    spec = BLOCKS[block].spec
    return spec.effect == "write" and not (spec.only_reads is not None and spec.only_reads(params))


def question(ctx: Context, tool: Tool, arguments: Mapping[str, Any]) -> Suspend:
    """Return the approval request: the arguments can be edited, with one field for each."""
    needed = tool.schema.get("required") or ()
    edited = {name: _field(field, arguments, name, name in needed) for name, field in tool.editable.items()}
    where = {} if tool.server is None else {"server": tool.server.host}
    reason = {"type": "string", "title": "Reason", "description": "The model is informed of it, if you reject."}
    return Suspend(
        "approval",
        request={
            "title": f"Call {tool.name}?",
            "text": tool.description,
            "show": {"tool": tool.name, **where, "arguments": dict(arguments)},
            "actions": ["approve", "reject"],
        },
        schema={"type": "object", "properties": {**edited, "reason": reason}},
        actions=("approve", "reject"),
    )


def _field(field: Any, arguments: Mapping[str, Any], name: str, needed: bool) -> dict[str, Any]:
    """`needed` is for the form only: a person who rejects the call need not fill in anything."""
    own = field if isinstance(field, dict) else {}
    given = {"default": arguments[name]} if name in arguments else {}
    return {**own, **given, **({"x-ui": {**(own.get("x-ui") or {}), "needed": True}} if needed else {})}


def effect_of(tool: Tool, params: Mapping[str, Any]) -> str:
    """Return the effect of the step that calls the tool. A call counts as a read if a repeat does no harm or the author
    allows it."""
    if tool.on_lost == "retry":
        return "read"
    if tool.remote is not None:
        return "read" if tool.remote.reads else "write"
    assert tool.block is not None
    return "read" if may_repeat(BLOCKS[tool.block].spec, params) else "write"


async def call_block(ctx: Context, tool: Tool, params: dict[str, Any], call: str) -> Any:
    """Return the output of the block. `call` identifies the call of the agent. Raises BlockError."""
    assert tool.block is not None
    inner = replace(
        ctx,
        type=tool.block,
        params=params,
        idempotency_key=f"{ctx.idempotency_key}:{call}",
        emit=_say_nothing,
        last_checkpoint=None,
        prepare_child=None,
        make_steps=None,
        steps=None,
    )
    with using(params):
        outcome = await BLOCKS[tool.block].run(inner)
    assert isinstance(outcome, Done)
    return outcome.output


async def child_of(ctx: Context, tool: Tool, arguments: Mapping[str, Any]) -> Suspend:
    """Return the run of the workflow. Raises BlockError if there is no such workflow, or the input does not fit."""
    if ctx.prepare_child is None:
        raise invalid("this server cannot start runs from blocks")
    child = await ctx.prepare_child(ChildRequest(workflow=tool.workflow, version=tool.version, input=dict(arguments)))
    title = f"{tool.name}: run of {child.workflow}"
    return Suspend("child", request={"title": title, "run": child.id, "workflow": child.workflow}, child=child)


def params_of(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of the block for this call. A text is one mail address here, whatever is in it: which of its
    commas the author wrote is not known. Several are a list."""
    assert tool.block is not None
    found: dict[str, Any] = filled(tool.params, arguments, media_type=_media_type(tool.params))
    for pointer in BLOCKS[tool.block].spec.addresses:
        name = pointer.removeprefix("/")
        if isinstance(found.get(name), str) and found[name]:
            found[name] = [found[name]]
    return found


def filled(value: Any, arguments: Mapping[str, Any], path: tuple[str, ...] = (), media_type: str | None = None) -> Any:
    """Return the params with the arguments in their places, encoded for the text around them. A place without an
    argument is null, or nothing inside a text. `media_type`: of the body."""
    if isinstance(value, dict):
        return {name: filled(inner, arguments, (*path, name), media_type) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, arguments, path, media_type) for inner in value]
    if not isinstance(value, str):
        return value
    whole = _PLACE.fullmatch(value.strip())
    if whole is not None:
        return arguments.get(whole[1])
    if path == ("url",):
        return _PLACE.sub(lambda place: _in_url(arguments.get(place[1])), value)
    form = form_of(value, _PLACE, media_type if path == ("body",) else None)
    return fill(value, _PLACE, lambda place: arguments.get(place[1]), form)


def _in_url(value: Any) -> str:
    shown = "" if value is None else render(value)
    encoded = quote(shown, safe="")
    # Encoded or not, a part of a path that is only dots leads up.
    return encoded.replace(".", "%2E") if set(shown) <= {"."} else encoded


def _media_type(params: Mapping[str, Any]) -> str | None:
    headers = params.get("headers")
    named = headers if isinstance(headers, dict) else {}
    return next(
        (text for name, text in named.items() if name.lower() == "content-type" and isinstance(text, str)), None
    )


def shown_result(output: Any) -> str:
    """Return the result as text for the model, cut to RESULT_MAX characters."""
    shown = render(output)
    if len(shown) <= RESULT_MAX:
        return shown
    return f"{shown[:RESULT_MAX]}\n[cut: it has {len(shown)} characters]"


def _say_nothing(text: str) -> None:
    """Drop the text that a tool emits: it is not text of the model."""

"""The tools of an agent, read from its params: a stored workflow, a block whose params the model fills in where the
author allows it, a Python function, or those of an MCP server (`servers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from compiler.catalog import CONNECTOR
from compiler.tracing.steps import Step
from executor.blocks.connectors.document import RESERVED
from executor.blocks.llm.base import ToolSpec
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.blocks.types import email, function, http, knowledge, redis, sql
from executor.blocks.types.connected import CONNECTION
from executor.blocks.types.params import FILLED, SENT_HEADERS, TypedParams, changed, form_schema, invalid, param
from executor.blocks.types.python import Python
from executor.blocks.types.question import BY
from executor.blocks.types.response import header_texts
from executor.errors import BlockError, NotFound
from executor.kernel.handler.base import Block, Registry

# Beside these, a tool may be an operation of a connector.
BLOCKS: Final[dict[str, Block]] = {
    block.spec.type: block
    for block in (http.block, email.block, sql.block, redis.block, function.block, knowledge.block)
}
_WRITTEN: Final = {"sql": "database and its query", "redis": "server and its command"}
NAME: Final = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
PLACE: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
ANSWERED: Final = ("action", "answered_at", "answered_by", "reason")  # fields of an answer; no arguments
MAX_CALLS: Final = 1000
_ANYTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}
_SESSION_OWN: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host",
     "keep-alive", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}
)  # fmt: skip


# A mail goes to servers outside the hosts of a secret.
_SECRETS: Final[dict[str, Any]] = {"x-url": ["url"], "x-secret-when": {"block": ["http"]}}


class ServerParams(TypedParams):
    url: str = param("URL", "Starts with http:// or https://", required=True, pattern=FILLED)
    headers: Any = changed(SENT_HEADERS, order=2)
    connection: str | None = changed(CONNECTION, order=1.5)
    tools: list[Any] | None = param(
        "Only these tools",
        "As the server calls them. Leave empty to offer all of them to the model.",
        order=3,
        weft="literal",
        items={"type": "string", "minLength": 1, "maxLength": 128},
        maxItems=100,
    )
    timeout_s: float = param(
        "Timeout (seconds)", "For each call.", default=60, order=4, advanced=True, exclusiveMinimum=0, maximum=600
    )


class ToolParams(TypedParams):
    name: str = param(
        "Name",
        "What the model calls it by: letters, digits, _ and -. The names of the tools of an MCP server begin with it.",
        required=True,
        weft="literal",
        pattern=NAME,
    )
    description: str | None = param("Description", "What it does and when to use it.", widget="longtext", rows=2)
    workflow: str | None = param(
        "Workflow", "Name of the workflow to run. The arguments are its input.", widget="workflow", maxLength=200
    )
    version: int | None = param(
        "Version", "Of the workflow. Leave empty to use the active one.", advanced=True, minimum=1, maximum=2**31
    )
    block: str | None = param(
        "Block",
        "A block type instead of a workflow: http, email, sql, redis, function, knowledge, or connector.<service>.",
        weft="literal",
        pattern=f"^({'|'.join(BLOCKS)}|{re.escape(CONNECTOR)}.+)$",
        maxLength=100,
    )
    mcp: ServerParams | None = param(
        "MCP server", "A server of tools instead of a workflow or a block, over streamable HTTP.", widget="tool_server"
    )
    params: dict[str, Any] | None = param(
        "Parameters of the block",
        "{{name}} stands for the argument of that name. The code of a function has the arguments in args.",
        widget="json",
        rows=5,
        weft="secret",
        **_SECRETS,
    )
    arguments: dict[str, Any] | None = param("Arguments", "What the model fills in.", widget="schema", weft="literal")
    approve: str = param(
        "Approval",
        "Who decides about a call.",
        default="never",
        weft="literal",
        choices={
            "never": "No one is asked",
            "always": "A person decides",
            "write": "A person decides about changes",
            "if": "A person decides if",
        },
        type="string",
    )
    approve_if: Any = param(
        "A person decides if",
        "A JavaScript expression. The arguments are in args.",
        widget="code",
        rows=1,
        weft="expression",
        when={"approve": ["if"]},
        type=["string", "boolean"],
    )
    by: list[Any] | None = changed(BY, order=13, weft="literal", when={"approve": ["always", "write", "if"]})
    on_lost: str = param(
        "If the process ends during a call",
        "A call that only reads, or that the service recognizes, is repeated in any case.",
        default="ask",
        order=12,
        advanced=True,
        weft="literal",
        choices={"ask": "A person decides", "retry": "Call again"},
        type="string",
    )
    max_calls: int | None = param(
        "Maximum calls",
        "Further calls are refused, and the model is informed.",
        order=11,
        advanced=True,
        minimum=1,
        maximum=MAX_CALLS,
    )
    agents: list[Any] | None = param(
        "Agents",
        "Those that have it: first, and names of handoffs. Leave empty for all of them.",
        order=14,
        advanced=True,
        weft="literal",
        items={"type": "string"},
        maxItems=20,
    )
    function: str | None = param(
        "Python function",
        "A function of this server instead, by its name. Its arguments are those of the tool.",
        order=5.5,
        weft="literal",
        maxLength=200,
    )


class Tool(Struct, frozen=True):
    """A tool. `given`: as the author lists it, and `block` the block of it. `step`: the Python function, if it is one
    with `@weft.step`. `definition`: the document of the workflow, if it is not stored. `server`: the MCP server that
    has it, as `remote`; without `remote` it stands for all tools of that server, or those that are listed.
    `handoff`: the agent that continues when it is called; then it has none of these."""

    name: str
    description: str
    schema: dict[str, Any]
    given: ToolParams
    block: Block | None = None
    step: Step[Any, Any] | None = None
    definition: Mapping[str, Any] | None = None
    server: ToolServer | None = None
    remote: ServerTool | None = None
    handoff: str | None = None

    @property
    def spec(self) -> ToolSpec:
        given = self.given
        called = self.remote.name if self.remote is not None else given.workflow or given.block or given.function
        return ToolSpec(self.name, self.description or f"Calls {called}.", _without_hints(self.schema))

    @property
    def connection(self) -> str | None:
        """The connection whose credential the MCP server gets."""
        return None if self.given.mcp is None else self.given.mcp.connection

    @property
    def only(self) -> tuple[str, ...]:
        """The tools of the MCP server that the author lists, or () for all."""
        return () if self.given.mcp is None else tuple(dict.fromkeys(self.given.mcp.tools or ()))

    @property
    def editable(self) -> dict[str, Any]:
        """The arguments that a person may edit, by name. An argument of an MCP tool can be called as a part of an
        answer is; it remains as it is then."""
        fields = self.schema.get("properties") or {}
        return {name: field for name, field in fields.items() if name not in ANSWERED}


def _without_hints(schema: Any) -> Any:
    """Return the schema without what is for forms alone."""
    if isinstance(schema, dict):
        return {name: _without_hints(part) for name, part in schema.items() if name != "x-ui"}
    return [_without_hints(part) for part in schema] if isinstance(schema, list) else schema


def takes_arguments(type: str, name: str) -> bool:
    """Return whether the model may fill in a part of this param."""
    if type.startswith(CONNECTOR):
        return name not in RESERVED
    if type == "knowledge":
        return name in knowledge.ARGUMENTS
    return type in ("http", "email") or (type, name) in (("sql", "parameters"), ("redis", "arguments"))


def read_tools(
    listed: Any, registry: Registry | None = None, written: Any = None, python: Python | None = None
) -> dict[str, Tool]:
    """Return the listed tools by name. `registry` has the connectors, `python` the functions; `written` are the tools
    as the plan has them, before their references were resolved. Raises BlockError(params_invalid)."""
    if listed in (None, ""):
        return {}
    if not isinstance(listed, list):
        raise invalid("tools must be a list")
    tools: dict[str, Tool] = {}
    for at, item in enumerate(listed):
        tool = _tool(item, registry, python)
        if tool.name in tools:
            raise invalid(f"the tool {tool.name} is listed twice")
        if tool.given.block in _WRITTEN:
            _check_written(tool, written[at] if isinstance(written, list) and at < len(written) else None)
        tools[tool.name] = tool
    return tools


def _check_written(tool: Tool, item: Any) -> None:
    """Data of a run must choose neither the database nor the query of a tool, as it must not in a `sql` block."""
    params = item.get("params") if isinstance(item, dict) else None
    check = BLOCKS[str(tool.given.block)].spec.check
    if not isinstance(params, dict) or any(check(params) if check else ()):
        raise invalid(f"the tool {tool.name} must have its {_WRITTEN[str(tool.given.block)]} written in the workflow")


def _tool(item: Any, registry: Registry | None, python: Python | None) -> Tool:
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(name, str) or re.fullmatch(NAME, name) is None:
        raise invalid("each tool must have a name of letters, digits, _ and -")
    try:
        given = ToolParams(item)
    except BlockError as error:
        raise invalid(f"the tool {name}: {error.message}", hint=error.hint) from None
    if sum(kind is not None for kind in (given.workflow, given.block, given.function, given.mcp)) != 1:
        raise invalid(f"the tool {name} must have a workflow, a block, a function or an MCP server")
    block, description, schema = _block(given.block, registry), given.description or "", form_schema(given.arguments)
    if given.function is not None:
        if python is None or (signature := python.signature_of(given.function)) is None:
            raise invalid(f"the tool {name}: there is no Python function {given.function!r} here")
        block, description, schema = python, description or signature.summary, schema or signature.params
    if given.block == "knowledge":
        given.params = knowledge.of_tool(given.params or {})
        schema = schema or knowledge.QUESTION
    schema = schema or _ANYTHING
    taken = [field for field in ANSWERED if field in (schema.get("properties") or {})]
    if taken:
        raise invalid(f"an argument of the tool {name} cannot be called {taken[0]}")
    if given.approve == "if" and given.approve_if in (None, ""):
        raise invalid(f"approve_if of the tool {name} is required")  # without it no call would need approval
    if given.mcp is not None and not all(isinstance(tool, str) and tool for tool in given.mcp.tools or ()):
        raise invalid(f"mcp.tools of the tool {name} must be a list of names")
    server = None if given.mcp is None else tool_server(given.mcp)
    step = None if python is None else python.step_of(given.function or "")
    return Tool(name, description, schema, given, block, step, server=server)


def _block(type: str | None, registry: Registry | None) -> Block | None:
    if type is None or type in BLOCKS:
        return BLOCKS[type] if type else None
    if not type.startswith(CONNECTOR) or registry is None:
        raise invalid(f"a block of type {type[:80]!r} cannot be a tool")
    try:
        return registry.handler(type)
    except NotFound as error:
        raise invalid(error.message, "use a connector that is in the list of blocks") from None


def tool_server(given: ServerParams) -> ToolServer:
    """Raises BlockError(params_invalid)."""
    return ToolServer(given.url, session_headers(given.headers), given.timeout_s)


def session_headers(given: Any) -> dict[str, str]:
    """Return the headers for all requests of a session. Raises BlockError(params_invalid)."""
    headers = header_texts(given, _SESSION_OWN)
    taken = next((header for header in headers if header.lower().startswith("mcp-")), None)
    if taken is not None:
        raise invalid(f"header {taken!r} is set by weft itself")
    return headers

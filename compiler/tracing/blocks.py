"""Blocks that durable functions and workflow functions await by the same names: `agent`, `http`, `email`, `sql`. In a
durable function a call is done by the handler of its block type, as a step or, for an agent, as several; in a workflow
function it records the block."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, cast, overload

from msgspec import Struct

from compiler.builder.errors import DefinitionError
from compiler.builder.step import Block
from compiler.builder.tools import Handoff, IsTool, called, entries, team
from compiler.signature import TypeUnknown, schema_of
from compiler.tracing.body import present_body
from compiler.tracing.steps import Step
from compiler.tracing.trace import Trace, current

T = TypeVar("T")

ANSWER = "answer"  # the field with the answer of an agent whose type is not an object: models return objects


class HttpResponse(Struct, frozen=True):
    """`body`: parsed if it is JSON, in base64 if it is not text (`encoding`)."""

    status: int
    headers: dict[str, str]
    body: Any = None
    encoding: str = "none"
    url: str = ""
    ms: int = 0


class Mailed(Struct, frozen=True):
    """A mail that was sent. `refused`: the recipients that the mail server did not take."""

    message_id: str
    to: list[str]
    refused: list[str]
    transport: str


class Rows(Struct, frozen=True):
    """The answer of a database. `cut` is why rows are missing, or None; `affected` how many were changed."""

    rows: list[Any]
    columns: list[Any]
    count: int
    cut: str | None = None
    affected: int | None = None
    ms: int = 0


class AgentOptions(TypedDict, total=False):
    """See the params of the block `agent`."""

    system: str
    messages: Sequence[Mapping[str, Any]]
    files: Any
    memory: str | int
    memory_scope: str
    memory_messages: int
    connection: str
    temperature: float
    max_tokens: int
    timeout_s: float
    max_rounds: int
    max_tool_calls: int
    budget_tokens: int
    budget_usd: float
    handoffs: Sequence[Handoff]


@overload
def agent(
    model: str,
    prompt: Any = None,
    *,
    output: type[T],
    tools: Sequence[IsTool | Mapping[str, Any]] = (),
    id: str | None = None,
    **options: Unpack[AgentOptions],
) -> Coroutine[Any, Any, T]: ...


@overload
def agent(
    model: str,
    prompt: Any = None,
    *,
    output: Mapping[str, Any],
    tools: Sequence[IsTool | Mapping[str, Any]] = (),
    id: str | None = None,
    **options: Unpack[AgentOptions],
) -> Coroutine[Any, Any, dict[str, Any]]: ...


@overload
def agent(
    model: str,
    prompt: Any = None,
    *,
    tools: Sequence[IsTool | Mapping[str, Any]] = (),
    id: str | None = None,
    **options: Unpack[AgentOptions],
) -> Coroutine[Any, Any, str]: ...


@overload
def agent(
    model: str,
    prompt: Any = None,
    *,
    output: Any,
    tools: Sequence[IsTool | Mapping[str, Any]] = (),
    id: str | None = None,
    **options: Unpack[AgentOptions],
) -> Coroutine[Any, Any, Any]: ...


def agent(
    model: str,
    prompt: Any = None,
    *,
    output: Any = str,
    tools: Sequence[IsTool | Mapping[str, Any]] = (),
    id: str | None = None,
    **options: Any,
) -> Any:
    """Ask a language model, which calls tools until it has an answer, and return the answer.

    model    `local:llama3`: the name of its server, and its own
    tools    steps, workflows, `weft.tool(...)`, and tools as in documents
    output   the type of the answer; text without it. The model is asked again, once, if its answer does not fit
    handoffs agents that may continue the conversation: `weft.handoff(...)`
    others   as the params of the block `agent`

    In a durable function each call of the model and of a tool is a step, and an approval a wait. Raises StepFailed,
    with the codes of the block: `output_invalid`, `limit_rounds`, `budget_spent`, …"""
    schema, path = _schema_of(output)
    handoffs = options.pop("handoffs", ())
    tools = team(tools, handoffs)
    given = {"model": model, "prompt": prompt, **options}
    params = {key: value for key, value in given.items() if value is not None}
    if schema:
        params["output_schema"] = schema
    if handoffs:
        params["handoffs"] = [one.params for one in handoffs]
    if (body := present_body()) is not None:
        return body.blocks.agent(params, tools, output, path)
    trace = current("agent")
    _call_tools(trace, tools)
    if tools:
        params["tools"] = entries(tools)
    inner = schema["properties"][ANSWER] if path else schema or {"type": "string"}
    return trace.record("agent", Block("agent", params=params), id, path=("content", *path), schema=inner)


def http(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    id: str | None = None,
    **params: Any,
) -> Coroutine[Any, Any, HttpResponse]:
    """An HTTP request by the block `http`, whose other params can be added. The value has `status`, `headers`, `body`.
    A request that may be repeated is. In a workflow function the block keeps `${NAME}` secret; in a durable one the
    credential is that of a `connection`. Raises StepFailed."""
    given = {"url": url, "method": method, "headers": headers, "query": query, "body": body}
    return _called("http", given | params, id, HttpResponse)


def email(
    to: str | Sequence[str],
    subject: str,
    body: Any = None,
    *,
    cc: str | Sequence[str] | None = None,
    attachments: Any = None,
    sender: str | None = None,
    id: str | None = None,
    **params: Any,
) -> Coroutine[Any, Any, Mailed]:
    """A mail, by the block `email`, whose other params can be added. In a durable function each text of `to` and `cc`
    is one address. Raises StepFailed."""
    given = {"to": to, "subject": subject, "body": body, "cc": cc, "attachments": attachments, "from": sender}
    return _called("email", given | params, id, Mailed)


def sql(
    database: str,
    query: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    read_only: bool = True,
    id: str | None = None,
    **params: Any,
) -> Coroutine[Any, Any, Rows]:
    """One statement for a database, by the block `sql`, whose other params can be added. The value has `rows`,
    `columns`, `affected`. Write `:name` in the query for a parameter. Raises StepFailed."""
    given = {"database": database, "query": query, "parameters": parameters, "read_only": read_only}
    return _called("sql", given | params, id, Rows)


def _called(type: str, given: Mapping[str, Any], id: str | None, returns: type[T]) -> Coroutine[Any, Any, T]:
    params = {key: value for key, value in given.items() if value is not None}
    if (body := present_body()) is not None:
        return body.blocks.call(type, params, returns)
    return cast(Coroutine[Any, Any, T], current(type).record(type, Block(type, params=params), id))


def _schema_of(output: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the schema of the answer, {} for text, and the path of the answer in what the model returns."""
    if output is str:
        return {}, ()
    try:
        schema = dict(output) if isinstance(output, Mapping) else schema_of(output)
    except TypeUnknown as error:
        raise DefinitionError(f"weft.agent: {error}.") from None
    if schema.get("type", "object") == "object" and (schema.get("properties") or isinstance(output, Mapping)):
        return schema, ()
    return {"type": "object", "properties": {ANSWER: schema}, "required": [ANSWER]}, (ANSWER,)


def _call_tools(trace: Trace, tools: Sequence[Any]) -> None:
    for one in called(tools):
        if isinstance(one, Step):
            trace.use(one)
        else:
            trace.workflows.setdefault(one.name, one)

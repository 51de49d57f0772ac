"""`redis`: one command for a Redis or Valkey server. The command is in the document; its arguments may be data."""

from __future__ import annotations

import time
from typing import Any, Final

import orjson

from compiler.catalog import Finding, Params
from executor.blocks.databases.commands import Command, only_reads, refusal, waits_s
from executor.blocks.databases.databases import REDIS
from executor.blocks.services import services_of
from executor.blocks.types.connected import CONNECTION, SETTING, check_address, login_of, signed_in
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import FILLED, TypedParams, changed, invalid, param, shape
from executor.blocks.vault.connection import Credential
from executor.kernel.handler.base import Done, StepContext

_TIMEOUT_MAX_S: Final = 300


def _check(params: Params) -> tuple[Finding, ...]:
    server, command = params.get("server"), params.get("command")
    found: tuple[Finding, ...] = ()
    if isinstance(server, str):
        connected = params.get("connection") not in (None, "")
        found = check_address(
            "server", server, connected, other="", schemes=REDIS, server="Redis", form="redis://host:port/0"
        )
    refused = refusal(command) if isinstance(command, str) and command.strip() else None
    if refused is not None:
        return (*found, Finding("param_invalid", "/command", f"{refused[0]}.", refused[1]))
    return found


def _only_reads(params: Params) -> bool:
    return only_reads(str(params.get("command")))


class _Params(TypedParams):
    server: str = param(
        "Server",
        "${NAME} of a secret with a redis:// or rediss:// address. With a connection: redis://host:port/0.",
        required=True,
        weft="secret",
        pattern=FILLED,
    )
    connection: str | None = changed(
        CONNECTION, description="Signs in to the server: a user name and password, or OAuth 2.", order=1.5
    )
    command: str = param(
        "Command",
        "Its name, such as GET, HSET or XINFO STREAM. References are not possible here.",
        required=True,
        order=2,
        weft="literal",
        pattern=FILLED,
    )
    arguments: list[Any] | None = param(
        "Arguments",
        "What follows the name, one item each. Objects and lists are sent as JSON.",
        order=3,
        widget="list",
        items={},
    )
    parse_json: bool = param("Parse JSON", "Texts of the answer that are JSON become values.", default=False, order=4)
    timeout_s: float = param(
        "Timeout (seconds)",
        "The block does not wait longer for the answer.",
        default=30,
        order=5,
        advanced=True,
        exclusiveMinimum=0,
        maximum=_TIMEOUT_MAX_S,
    )


@block_type(
    type="redis",
    title="Redis command",
    description="Sends one command to a Redis or Valkey server and returns its answer.",
    category="action",
    params=_Params.json_schema,
    effect="write",
    idempotent=False,
    only_reads=_only_reads,
    check=_check,
    output=shape(result={}, ms="integer"),
    attempts=3,
    sentence="{command} {arguments} | {command} | Ask Redis",
    icon="sql",
)
async def block(ctx: StepContext) -> Done:
    """Output {"result", "ms"}. Raises BlockError(params_invalid), the errors of `Databases.command`, and Lost."""
    params = _Params(ctx.params)
    if SETTING.fullmatch(params.server):
        raise invalid(f"{params.server} is not set on this server")
    if (refused := refusal(params.command)) is not None:
        raise invalid(*refused)
    name = " ".join(params.command.upper().split())
    given = [_as_text(at, value) for at, value in enumerate(params.arguments or [], 1)]
    command = Command(name, given, params.timeout_s, params.parse_json)
    if (seconds := waits_s(command)) is not None and not 0 < seconds < params.timeout_s:
        raise invalid(f"{name} must wait a number of seconds above 0 and below timeout_s, {params.timeout_s:g}")
    began = time.monotonic()

    async def ask(credential: Credential | None) -> Any:
        login = login_of(credential)
        return await services_of(ctx).databases.command(params.server, command, login=login, waiting=ctx.waiting)

    result = await signed_in(ctx, params.connection, ask)
    return Done({"result": result, "ms": round((time.monotonic() - began) * 1000)})


def _as_text(at: int, value: Any) -> str:
    """Return an argument as it is sent."""
    if value is None:
        raise invalid(f"argument {at} has no value", "leave it out, or give a text that stands for it")
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        text.encode()
    except (TypeError, UnicodeError) as error:
        raise invalid(f"argument {at}: {error}") from None
    return text

"""`sql`: one statement on a database, with its parameters bound. The text of a query never changes."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from compiler.catalog import Finding, Params
from compiler.references import Found, find
from executor.blocks.databases.databases import MYSQL, POSTGRES
from executor.blocks.databases.rows import ROWS_MAX, Answer, Query
from executor.blocks.databases.statement import names
from executor.blocks.services import services_of
from executor.blocks.types.connected import CONNECTION, SETTING, check_address, login_of, signed_in
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import FILLED, TypedParams, changed, invalid, param, shape
from executor.blocks.vault.connection import Credential
from executor.kernel.handler.base import Done, StepContext

_ROWS_DEFAULT: Final = 1_000
_TIMEOUT_DEFAULT_S: Final = 30
_TIMEOUT_MAX_S: Final = 300
# `a <b and c> d` is a comparison; text without blanks that has a step was meant as a reference.
_REFERENCE: Final = re.compile(r"[^\s<>]+[.\[][^\s<>]+(\s*\?\?.*)?")


def _check(params: Params) -> tuple[Finding, ...]:
    return (*_check_database(params), *_check_query(params))


def _check_database(params: Params) -> tuple[Finding, ...]:
    database, connected = params.get("database"), params.get("connection") not in (None, "")
    is_file = isinstance(database, str) and not connected and "://" not in database and not find(database)
    if not isinstance(database, str) or is_file:
        return ()
    return check_address(
        "database",
        database,
        connected,
        other=" or the name of a SQLite file",
        schemes=POSTGRES + MYSQL,
        server="PostgreSQL or MySQL",
        form="postgresql://host:port/database or mysql://host:port/database. A SQLite file needs no connection",
    )


def _check_query(params: Params) -> tuple[Finding, ...]:
    query, given = params.get("query"), params.get("parameters")
    if not isinstance(query, str):
        return ()
    for found in find(query):
        if refers(found):
            message = f"The query contains the reference {query[found.start : found.end][:100]}."
            hint = "Add a parameter with this value and write :name in the query. Values are never put into its text."
            return (Finding("param_invalid", "/query", message, hint),)
    known = {} if given is None else given
    # A secret has the address: then it may be a text of MySQL, whose texts and comments end elsewhere.
    missing = [name for name in names(query) if name not in known] if isinstance(known, dict) else []
    if missing:
        missing = [name for name in names(query, mysql=True) if name in missing]
    if missing:
        message = f"The query uses :{missing[0]}, which is not a parameter."
        return (Finding("param_invalid", "/parameters", message, f"Add {missing[0]!r} to the parameters."),)
    return ()


def refers(found: Found) -> bool:
    """Return whether it was meant as a reference, in a text in which `a <b and c> d` is a comparison."""
    return found.env or _REFERENCE.fullmatch(found.text) is not None


class _Params(TypedParams):
    database: str = param(
        "Database",
        "${NAME} of a secret with a postgresql:// or mysql:// address, or the name of a SQLite file. "
        "With a connection: postgresql://host:port/database.",
        required=True,
        weft="secret",
        pattern=FILLED,
    )
    connection: str | None = changed(
        CONNECTION, description="Signs in to PostgreSQL or MySQL: a user name and password, or OAuth 2.", order=1.5
    )
    query: str = param(
        "Query",
        "One statement. Write :name for a parameter. References are not possible here.",
        required=True,
        order=2,
        widget="code",
        rows=8,
        weft="literal",
        ui={"language": "sql"},
        pattern=FILLED,
    )
    parameters: dict[str, Any] | None = param("Parameters", "Values for :name in the query.", order=3)
    read_only: bool = param(
        "Read only",
        "The database refuses every change. Turn off to insert, update or delete.",
        default=True,
        order=4,
        weft="literal",
    )
    max_rows: int = param(
        "Maximum rows",
        "More rows are left out. Then the output has cut: rows.",
        default=_ROWS_DEFAULT,
        order=5,
        advanced=True,
        minimum=1,
        maximum=ROWS_MAX,
    )
    timeout_s: float = param(
        "Timeout (seconds)",
        "The database stops a query that takes longer.",
        default=_TIMEOUT_DEFAULT_S,
        order=6,
        advanced=True,
        exclusiveMinimum=0,
        maximum=_TIMEOUT_MAX_S,
    )


def _only_reads(params: Params) -> bool:
    """Also of the params of a run: what is not exactly false must not let a query write."""
    return params.get("read_only") is not False


@block_type(
    type="sql",
    title="SQL query",
    description="Runs one SQL statement on a PostgreSQL or MySQL database or a SQLite file and returns its rows.",
    category="action",
    params=_Params.json_schema,
    effect="write",
    idempotent=False,
    only_reads=_only_reads,
    check=_check,
    output=shape(
        rows={"type": "array", "items": {"type": "object", "additionalProperties": True}},
        columns={"type": "array", "items": {"type": "string"}},
        count="integer",
        cut={"enum": [None, "rows", "bytes"]},
        affected=["integer", "null"],
        ms="integer",
    ),
    attempts=3,
    sentence="{query} | Ask a database",
    icon="sql",
)
async def block(ctx: StepContext) -> Done:
    """Output {"rows", "columns", "count", "cut", "affected", "ms"}. Raises BlockError(params_invalid), the errors
    of `Databases.ask`, and Lost."""
    params = _Params(ctx.params)
    if SETTING.fullmatch(params.database):
        raise invalid(f"{params.database} is not set on this server")
    asked = Query(
        params.query,
        params.parameters or {},
        read_only=_only_reads(ctx.params),
        max_rows=params.max_rows,
        timeout_s=params.timeout_s,
    )
    began = time.monotonic()

    async def ask(credential: Credential | None) -> Answer:
        return await services_of(ctx).databases.ask(
            params.database, asked, run=ctx.run_id, login=login_of(credential), waiting=ctx.waiting
        )

    answer = await signed_in(ctx, params.connection, ask)
    return Done(
        {
            "rows": answer.rows,
            "columns": answer.columns,
            "count": len(answer.rows),
            "cut": answer.cut,
            "affected": answer.affected,
            "ms": round((time.monotonic() - began) * 1000),
        }
    )

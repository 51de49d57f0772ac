"""Sim's blocks of PostgreSQL and MySQL -> `sql` blocks. References in a statement become its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from compiler.imports.sim_text import Settings, mapping, parse_json
from compiler.imports.statements import ROWS_MAX, Span, Statement, reads
from compiler.references import find

_PORTS: Final = {"postgresql": 5432, "mysql": 3306}
_TLS: Final = {
    "postgresql": {"disabled": "?sslmode=disable", "required": "?sslmode=require"},
    "mysql": {"disabled": "?ssl-mode=DISABLED", "required": "?ssl-mode=VERIFY_IDENTITY"},
}
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+")
_JSON_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def only_reads(settings: Mapping[str, Any]) -> bool:
    """Return whether the block changes nothing: then Sim's `rowCount` is the number of its rows."""
    return settings.get("operation", "query") in ("query", "execute") and reads(str(settings.get("query") or ""))


def sql(kind: str, block: Settings) -> dict[str, Any]:
    """Return the params of an `sql` block."""
    statement = Statement(mysql=kind == "mysql", lose=block.lose)
    query = _query(block, statement)
    params: dict[str, Any] = {**_address(kind, block), "query": query, "read_only": only_reads(block.params)}
    if params["read_only"]:
        params["max_rows"] = ROWS_MAX
    if not query:
        del params["query"]
    return {**params, "parameters": statement.parameters} if statement.parameters else params


def _query(block: Settings, statement: Statement) -> str:
    operation = block.text("operation") or "query"
    if operation in ("query", "execute"):
        return _bound(block, block.texts.text(block.text("query").strip()), statement)
    names = [part.strip('"` ') for part in block.texts.text(block.text("table")).split(".")]
    whole = find(block.texts.text(block.text("table")))
    table = block.texts.text(block.text("table")) if whole else statement.name(*names)
    if whole:
        block.lose("Its table is a reference.", "Write the name of the table in the query.")
    row = _data(block)
    if operation == "delete":
        return statement.delete(table, _where(block, statement))
    if row is None:
        data = block.texts.text(block.text("data"))
        block.lose("The columns of its data are not known.", "Write the query, with a parameter for each column.")
        return f"INSERT INTO {table} {data}" if operation == "insert" else f"UPDATE {table} SET {data}"  # noqa: S608 - not run
    if operation == "insert":
        return statement.insert(table, row)
    return statement.update(table, row, _where(block, statement))


def _where(block: Settings, statement: Statement) -> str:
    """A condition as SQL, or, in older blocks of MySQL, values by column. Sim refuses to change all rows."""
    given = block.json("where")
    if isinstance(given, Mapping):
        return statement.where((str(column), "=", block.texts.value(value)) for column, value in given.items())
    text = block.texts.text(block.text("where").strip())
    if not text:
        block.lose("It has no condition, which Sim requires.", "Write the condition.")
        return " WHERE false"
    return _bound(block, f" WHERE {text}", statement)


def _bound(block: Settings, text: str, statement: Statement) -> str:
    found = [one for one in find(text) if not one.env and block.texts.refers(one.text)]
    spans = [Span(one.start, one.end, (_WORD.findall(one.text) or ["value"])[-1]) for one in found]
    return statement.text(text, spans, lambda value, name: value)


def _data(block: Settings) -> dict[str, Any] | None:
    """Return values by column. In the JSON of Sim a reference may stand without quotes."""
    text = block.get("data")
    if isinstance(text, str):
        text = block.texts.text(text)
        texts = [found.span() for found in _JSON_TEXT.finditer(text)]
        for one in reversed(find(text)):
            if not any(start < one.start < end for start, end in texts):
                text = f'{text[: one.start]}"{text[one.start : one.end]}"{text[one.end :]}'
        parsed = parse_json(text)
        return dict(parsed) if isinstance(parsed, Mapping) and parsed else None
    return dict(block.texts.value(mapping(text))) or None


def _address(kind: str, block: Settings) -> dict[str, Any]:
    """The address, without the password, and a connection that signs in; or a secret that has all of it."""
    host, port, database = (block.text(name).strip() for name in ("host", "port", "database"))
    user = block.text("username").strip()
    if _HOST.fullmatch(host) and port.isdecimal() | (not port) and database and not _open(database + user):
        block.lose(
            "Its password is not imported.",
            f'Create a connection with the name "{kind}" for the user "{user}", or choose another one in the block.',
        )
        tls = _TLS[kind].get(block.text("ssl"), "")
        account = f"{quote(user, safe='')}@" if user else ""
        address = f"{kind}://{account}{host}:{port or _PORTS[kind]}/{quote(database, safe='')}{tls}"
        return {"database": address, "connection": kind}
    name = f"{kind.upper()}_URL"
    hint = f"Store the secret {name}: {kind}://user:password@host:port/database."
    block.lose("Its database is not imported.", hint)
    return {"database": f"${{{name}}}"}


def _open(text: str) -> bool:
    return "<" in text or "{{" in text

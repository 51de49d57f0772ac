"""The nodes of n8n for PostgreSQL and MySQL -> `sql` blocks. What they write into a query becomes a parameter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from compiler.imports.n8n_step import Made, Step, located
from compiler.imports.n8n_text import listed, quoted, slug, split
from compiler.imports.sim_text import mapping
from compiler.imports.statements import ROWS_MAX, Span, Statement, reads

_LIMIT: Final = 50  # of a node that names none
_ROWS: Final = "[<@.rows> ?? []].flat()"
_CHANGED: Final = f"((rows) => rows.length ? rows : [{{ success: true }}])({_ROWS})"
_OPERATORS: Final = {"equal": "=", "!=": "<>", "like": "LIKE", "LIKE": "LIKE", ">": ">", "<": "<", ">=": ">="} | {
    "<=": "<=", "IS NULL": "IS NULL", "IS NOT NULL": "IS NOT NULL"
}  # fmt: skip
_NUMBER: Final = re.compile(r"\$(\d+)(?!\d)")
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def sql(step: Step) -> Made | None:
    operation = step.text("operation") or ("insert" if step.node.version >= 2 else "executeQuery")
    statement = Statement(mysql=step.node.kind == "mySql", lose=step.lose)
    query = _query(step, statement) if operation == "executeQuery" else _made(step, operation, statement)
    if query is None:
        return None
    only_reads = reads(query)
    name = f"{slug(step.node.kind).upper()}_URL"
    step.lose("Its database is not imported.", f"Store the secret {name}, the address of the database.")
    params: dict[str, Any] = {"database": f"${{{name}}}", "query": query, "read_only": only_reads}
    params |= {"max_rows": ROWS_MAX} if only_reads else {}
    params |= {"parameters": statement.parameters} if statement.parameters else {}
    if not query:
        del params["query"]
    return Made("sql", params, None, _ROWS if only_reads else _CHANGED)


def _query(step: Step, statement: Statement) -> str:
    text = step.text("query").removeprefix("=").strip()
    given = _replacements(step)
    text = _NUMBER.sub(lambda at: f"{{{{ {given[int(at[1]) - 1]} }}}}" if 0 < int(at[1]) <= len(given) else at[0], text)
    spans: list[Span] = []
    at = 0
    for piece, is_code in split(text):
        start = at
        at = text.index("}}", text.index(piece, at) + len(piece)) + 2 if is_code else at + len(piece)
        if is_code:
            spans.append(Span(start, at, (_WORD.findall(piece) or ["value"])[-1]))
    if len(spans) == 1 and (spans[0].start, spans[0].end) == (0, len(text)):
        step.lose("Its query is made when it runs, and is not imported.", "Write the query in the block.")
        return ""
    return statement.text(text, spans, lambda one, name: step.texts.value(f"={one}", name))


def _replacements(step: Step) -> list[str]:
    """JavaScript of each query parameter: of a list with commas, or of an expression that is an array."""
    pieces = list(split(step.text("options", "queryReplacement").removeprefix("=")))
    if len(pieces) == 1 and pieces[0][1] and pieces[0][0].startswith("["):
        return [f"({pieces[0][0]})[{n}]" for n in range(pieces[0][0].count(",") + 1)]
    found: list[str] = []
    for piece, is_code in pieces:
        found += [piece] if is_code else [quoted(one.strip()) for one in piece.split(",") if one.strip()]
    return found


def _made(step: Step, operation: str, statement: Statement) -> str | None:
    places = [place for name in ("schema", "table") if (place := located(step.get(name))) not in (None, "")]
    table = statement.name(*places)
    match operation:
        case "select" | "read":
            return _select(step, table, statement)
        case "deleteTable":
            match step.text("deleteCommand") or "truncate":
                case "delete":
                    return statement.delete(table, _where(step, statement), returning=False)
                case "drop":
                    return f"DROP TABLE IF EXISTS {table}{_cascade(step)}"
                case _:
                    again = " RESTART IDENTITY" if step.get("restartSequences") is True else ""
                    return f"TRUNCATE TABLE {table}{again}{_cascade(step)}"
        case "insert" | "upsert" | "update":
            keys, row = _row(step, operation)
            if not row or (operation != "insert" and not keys):
                step.lose("Its columns are not known.", "Write the query, with a parameter for each column.")
                return ""
            if operation == "update":
                tests = [(key, "=", row[key]) for key in keys if key in row]
                changed = {column: value for column, value in row.items() if column not in keys}
                where = statement.where(tests) or " WHERE false"
                return statement.update(table, changed, where)
            return statement.insert(table, row, keys if operation == "upsert" else None)
        case _:
            return None


def _select(step: Step, table: str, statement: Statement) -> str:
    chosen = step.get("options", "outputColumns")
    listing = ", ".join(map(statement.name, chosen)) if isinstance(chosen, list) and "*" not in chosen else "*"
    query = f"SELECT {listing or '*'} FROM {table}{_where(step, statement)}"  # noqa: S608 - names are quoted
    order = [f"{statement.name(one.get('column'))} {'DESC' if one.get('direction') == 'DESC' else 'ASC'}"
             for one in listed(step.get("sort"), "values")]  # fmt: skip
    query += f" ORDER BY {', '.join(order)}" if order else ""
    limit = step.get("limit", otherwise=_LIMIT)
    return query if step.get("returnAll") is True or not isinstance(limit, int) else f"{query} LIMIT {limit}"


def _where(step: Step, statement: Statement) -> str:
    tests = []
    for one in listed(step.get("where"), "values"):
        column, condition = str(one.get("column")), str(one.get("condition") or "equal")
        operator = _OPERATORS.get(condition)
        if operator is None:
            step.lose(f"Its condition {condition[:40]} is not known, and is read as equal.", "Change the query.")
        tests.append((column, operator or "=", step.texts.value(one.get("value"), column)))
    return statement.where(tests, "OR" if step.text("combineConditions") == "OR" else "AND")


def _row(step: Step, operation: str) -> tuple[list[str], dict[str, Any]]:
    """(the columns that find the row, values by column). Of all fields of an item only those columns are known that
    the export lists."""
    columns = step.get("columns")
    newer = mapping(columns)
    keys = [str(one) for one in newer.get("matchingColumns") or ()]
    keys = keys or [str(one).strip() for one in (step.get("columnToMatchOn"), step.get("updateKey")) if one]
    chosen: Mapping[str, Any] = mapping(newer.get("value"))
    if rows := listed(step.get("valuesToSend"), "values"):
        chosen = {str(one["column"]): one.get("value") for one in rows if one.get("column")}
        if operation != "insert" and keys:
            chosen = {keys[0]: step.get("valueToMatchOn"), **chosen}
    if chosen and newer.get("mappingMode") != "autoMapInputData":
        return keys, {column: step.texts.value(value, column) for column, value in chosen.items()}
    names = [str(one["id"]) for one in listed(columns, "schema") if one.get("id") and one.get("removed") is not True]
    if isinstance(columns, str):
        names = [name for one in columns.split(",") if (name := one.strip())]
    elif names:
        hint = "Remove the columns that the items do not have."
        step.lose(f"It writes the columns {', '.join(names)[:200]}.", hint)
    names = [*dict.fromkeys([*keys, *names])] if names else []
    return keys, {name: step.texts.value(f"={{{{ $json[{quoted(name)}] }}}}", name) for name in names}


def _cascade(step: Step) -> str:
    return " CASCADE" if step.get("options", "cascade") is True else ""

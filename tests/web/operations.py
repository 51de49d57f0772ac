"""web/src/api/operations.ts: the routes of the server with the types of what is sent and answered, from openapi.json.

To write it after a change of a route: `npm --prefix web run types`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from server.api import TABLE
from server.http.openapi import openapi
from tests.web.api_types import OUT as SCHEMAS
from tests.web.api_types import type_of

OUT = SCHEMAS.with_name("operations.ts")
HEAD = """\
// The routes of the server, made from openapi.json by `npm run types`: change the route table, not this file.
"""
_NAME = re.compile(r"\b[A-Z]\w+\b")
# What their clients are: browsers, MCP clients, other systems, and the files, which are no JSON.
LEFT_OUT = ("/resume/", "/hooks/", "/mcp", "/demo/", "/openapi.json", "/api/files")


def module() -> str:
    """The whole file."""
    described = openapi(TABLE)
    paths: dict[str, Any] = described["paths"]
    routes = [
        (f"{method.upper()} {path}", operation)
        for path, operations in paths.items()
        if not path.startswith(LEFT_OUT)
        for method, operation in operations.items()
    ]
    keyed = [name for name, operation in routes if _headers(operation, "Idempotency-Key")]
    body = "\n".join(line for name, operation in routes for line in _operation(name, operation))
    used = sorted({*_NAME.findall(re.sub(r"'[^']*'|/\*\*.*\*/", "", body))} & {*described["components"]["schemas"]})
    used += [name for name in ("Json", "JsonObject") if re.search(rf"\b{name}\b", body)]
    names = "".join(f"  {name},\n" for name in used)
    imports = f"import type {{\n{names}}} from './schemas.js'\n"
    keys = "".join(f"  '{name}',\n" for name in keyed)
    return "\n".join(
        [
            HEAD,
            imports,
            f"export interface Operations {{\n{body}\n}}\n",
            "/** They make something, but one thing only however often they are sent with the same Idempotency-Key. */",
            f"export const KEYED: ReadonlySet<string> = new Set([\n{keys}])\n",
        ]
    )


def _operation(name: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"  /** {operation['summary'].replace('*/', '* /')}. */"
    yield f"  '{name}': {{"
    yield f"    path: {_parameters(operation, 'path')}"
    yield f"    query: {_parameters(operation, 'query')}"
    yield f"    body: {_body(operation)}"
    yield f"    answer: {_answer(operation)}"
    yield "  }"


def _parameters(operation: Mapping[str, Any], where: str) -> str:
    found = [one for one in operation.get("parameters", ()) if one["in"] == where]
    if not found:
        return "Record<never, never>"
    fields = (f"{one['name']}{'' if one.get('required') else '?'}: {type_of(one['schema'])}" for one in found)
    return "{ " + "; ".join(fields) + " }"


def _headers(operation: Mapping[str, Any], name: str) -> bool:
    return any(one["in"] == "header" and one["name"] == name for one in operation.get("parameters", ()))


def _body(operation: Mapping[str, Any]) -> str:
    body = operation.get("requestBody")
    if body is None:
        return "undefined"
    of = type_of(body["content"]["application/json"]["schema"])
    return of if body["required"] else f"{of} | undefined"


def _answer(operation: Mapping[str, Any]) -> str:
    usual = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    content = usual.get("content", {})
    if "application/json" not in content:
        return "string"
    of = type_of(content["application/json"]["schema"])
    return f"{of} | string" if "text/plain" in content else of


if __name__ == "__main__":
    OUT.write_text(module(), encoding="utf-8")
    sys.stdout.write(f"{OUT.name}: written\n")

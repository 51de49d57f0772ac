"""Blocks of Sim without a counterpart, most of them services of vendors. Each becomes a `function` block in its place
that fails when it runs, with the next step in its message; its settings are kept in the notes. So the rest of the
workflow can be compiled, shown and run up to there. Such a tool of an agent becomes a tool that fails when the model
calls it. `compiler.imports.not_imported` finds both in a document of ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, Final

import orjson

from compiler.imports import missing_workflow, stand_in
from compiler.imports.sim_text import Loss

NOTES_MAX: Final = 4_000
_VERSION: Final = re.compile(r"_v\d+$")
_SECRET: Final = re.compile(r"credential|secret|token|password|api_?key|access_?key", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}")
# Services that have a connector here, by Sim's name.
_CONNECTORS: Final = {
    "discord": "discord",
    "github": "github",
    "gmail": "gmail",
    "google_sheets": "google_sheets",
    "linear": "linear",
    "notion": "notion",
    "s3": "s3",
    "slack": "slack",
    "telegram": "telegram",
}
_OTHERS: Final = {
    "file": "Replace it with a start field or an http block that reads the file.",
    "knowledge": "Replace it with a block that asks your search, such as sql or http.",
    "mail": "Replace it with an email block.",
    "mysql": "Replace it with an sql block if the data can be in PostgreSQL or SQLite.",
    "postgresql": "Replace it with an sql block.",
    "sendgrid": "Replace it with an email block.",
    "smtp": "Replace it with an email block.",
    "supabase": "Replace it with an sql block that asks its PostgreSQL database, or with an http block.",
}
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_ANY: Final = "Replace it with an http block that calls the service, or a connector made of its OpenAPI description."
_TITLES: Final = {"github": "GitHub", "linkedin": "LinkedIn", "mysql": "MySQL", "postgresql": "PostgreSQL", "x": "X"}


def service_of(kind: str) -> str:
    """Sim's block type without its version: `gmail_v2` -> `gmail`."""
    return _VERSION.sub("", kind)


def title_of(kind: str) -> str:
    """`google_sheets_v2` -> `Google Sheets`."""
    service = service_of(kind)
    return _TITLES.get(service) or service.replace("_", " ").title()


def advice(kind: str) -> str:
    """Return the next step for a block of this type."""
    service = service_of(kind)
    if service in _CONNECTORS:
        return f"Replace it with the block connector.{_CONNECTORS[service]}."
    return _OTHERS.get(service, _ANY)


def tool_advice(kind: str) -> str:
    """Return the next step for a tool of an agent."""
    service = service_of(kind)
    if service in _CONNECTORS:
        return f"Make a workflow with the block connector.{_CONNECTORS[service]}, and choose it in the tool."
    return "Use an http block that calls the service in the tool, or choose a workflow that does."


def lost_tool(tool: Mapping[str, Any], taken: Collection[str]) -> tuple[dict[str, Any], Loss]:
    """(a tool in its place, what was lost). `taken`: names of the tools before it."""
    kind = str(tool.get("type") or "")
    title = str(tool.get("title") or title_of(kind or "a tool"))[:80]
    asked = _mapping(_mapping(tool.get("schema")).get("function"))
    operation = str(tool.get("operation") or "")
    name = str(asked.get("name") or "_".join(filter(None, (title, operation))))
    found: dict[str, Any] = {"name": _free_name(name, taken)}
    if about := str(asked.get("description") or (operation and f"{title}: {operation}") or title):
        found["description"] = about
    if arguments := _mapping(asked.get("parameters")):
        found["arguments"] = dict(arguments)
    hint = {
        "workflow": "Import that workflow, too, and choose it in the tool.",
        "custom-tool": "Make a workflow of its code, and choose it in the tool.",
    }.get(kind) or tool_advice(kind)
    message = f'Its tool "{title}" is not imported. The agent fails when the model calls it.'
    return {**found, "workflow": missing_workflow(title, "Sim")}, Loss(message, hint)


def _free_name(name: str, taken: Collection[str]) -> str:
    plain = _NAME.sub("_", name).strip("_-")[:60]
    plain = plain if plain[:1].isalpha() else f"tool_{plain}".rstrip("_")
    numbered = (f"{plain[:60]}_{n}" for n in count(2))
    return plain if plain not in taken else next(each for each in numbered if each not in taken)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def foreign(kind: str, name: str) -> tuple[str, dict[str, Any], list[Loss]]:
    """(our type, our params, what was lost)."""
    loss = Loss("It is not imported. A block that fails is in its place.", advice(kind))
    return "function", stand_in(f'The {title_of(kind)} block "{name}"', "Sim", advice(kind)), [loss]


def settings_of(kind: str, params: Mapping[str, Any]) -> str:
    """The settings of such a block for people to read; no credentials, which do not belong into a document."""
    shown = {
        key: value
        for key, value in params.items()
        if value not in (None, "", [], {}) and not (_SECRET.search(key) and not _is_reference(value))
    }
    if not shown:
        return ""
    listed = orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode()
    return f"{title_of(kind)} in Sim:\n{listed}"[:NOTES_MAX]


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and _REFERENCE.fullmatch(value.strip()) is not None

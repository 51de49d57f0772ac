"""Blocks of Sim without a counterpart, most of them services of vendors. Each becomes a `function` block in its place
that fails when it runs and says what to do; its settings are kept in the notes. So the rest of the workflow can be
compiled, looked at and run up to there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

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
    """What to do about a block of this type."""
    service = service_of(kind)
    if service in _CONNECTORS:
        return f"Replace it with the block connector.{_CONNECTORS[service]}."
    return _OTHERS.get(service, _ANY)


def tool_advice(kind: str) -> str:
    """What to do about a tool of an agent."""
    service = service_of(kind)
    if service in _CONNECTORS:
        return f"Add a tool with the block connector.{_CONNECTORS[service]}."
    return "Add a tool with an http block that calls the service."


def foreign(kind: str, name: str) -> tuple[str, dict[str, Any], list[Loss]]:
    """(our type, our params, what was lost)."""
    text = f'The {title_of(kind)} block "{name}" was not imported from Sim. {advice(kind)}'
    quoted = orjson.dumps(text).decode().replace("<", "\\u003c").replace("$", "\\u0024")  # no references in code
    loss = Loss("It is not imported. A block that fails is in its place.", advice(kind))
    return "function", {"code": f"throw new Error({quoted})"}, [loss]


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

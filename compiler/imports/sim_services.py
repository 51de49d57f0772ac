"""Sim's blocks of services -> blocks of our connectors, where an operation of ours does the same.

Each of the others becomes a `function` block in its place that fails when it runs, with the next step in its message
and its settings in the notes: the rest of the workflow can be compiled, shown and run up to there. Such a tool of an
agent becomes a tool that fails when the model calls it.

A field that the connector requires and the block does not have stays open: it is the finding `required` until it is
filled in. Exports of Sim have no channels, no databases and no accounts; for the account the block gets the connection
that is named like the service, which is reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import orjson

from compiler.catalog import Catalog
from compiler.imports import missing_workflow, stand_in
from compiler.imports.sim_text import NOTHING, Loss, Settings, Texts, mapping, parse_json

NOTES_MAX: Final = 4_000
_VERSION: Final = re.compile(r"_v\d+$")
_SECRET: Final = re.compile(r"credential|secret|token|password|api_?key|access_?key", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}")
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_ANY: Final = "Replace it with an http block that calls the service, or a connector made of its OpenAPI description."
# Fields of the account, and switches of Sim's form, are left out without a loss.
_FORM: Final = frozenset(
    {"operation", "authMethod", "credential", "manualCredential", "destinationType", "messageFormat", "triggerMode"}
    | {"advancedMode", "botToken", "apiKey", "accessKeyId", "secretAccessKey", "serverId", "selectedTriggerId"}
)
_SAME: Final = {"contentType": "text", "insertDataOption": "INSERT_ROWS"}  # what ours does in any case
_SHOWN_MAX: Final = 10
Kind = Literal["text", "number", "list", "json", "rows"]
_KINDS: Final[dict[str, Kind]] = {"": "text", **{kind: kind for kind in get_args(Kind)}}


class Field(NamedTuple):
    """A field. `names` are Sim's settings, of which the first with a value counts. `list`: text with commas."""

    names: tuple[str, ...]
    kind: Kind = "text"


class Operation(NamedTuple):
    """An operation. `fixed` is what Sim's operation always does, as a param of ours."""

    name: str
    fields: dict[str, Field]
    fixed: dict[str, Any]


def _operation_of(line: str) -> Operation:
    """Read an operation of the table: the name of ours, then our params with Sim's settings (of the same name without
    `=`), of which the first with a value counts. `kind:` stands before settings that are no text; `param!VALUE` is what
    Sim's operation always does."""
    name, *words = line.split()
    operation = Operation(name, {}, {})
    for word in words:
        param, _, always = word.partition("!")
        if always:
            operation.fixed[param] = [always]
            continue
        param, _, settings = word.partition("=")
        kind, _, names = (settings or param).rpartition(":")
        operation.fields[param] = Field(tuple(names.split("|")), _KINDS[kind])
    return operation


_SIM: Final = orjson.loads(Path(__file__).with_name("sim_services.json").read_bytes())
SERVICES: Final[dict[str, Any]] = _SIM["services"]  # by Sim's block type; `default`: of a block that names no operation


def connector(
    kind: str, settings: Mapping[str, Any], texts: Texts, catalog: Catalog | None
) -> tuple[str, dict[str, Any], list[Loss]] | None:
    """Return our type, our params, and the losses, or None if no operation in the catalog does the same."""
    service = service_of(kind)
    spec = None if catalog is None else catalog.get(f"connector.{service}")
    operation = _operation(service, settings)
    if spec is None or operation is None:
        return None
    params: dict[str, Any] = {"operation": operation.name, **operation.fixed}
    for ours, field in operation.fields.items():
        value = _value(field, settings, texts)
        if value not in NOTHING:
            params[ours] = value
    if service == "google_sheets" and "range" not in params and (cells := _range(settings, texts)):
        params["range"] = cells
    if isinstance(params.get("rows"), list) and not all(isinstance(row, list | str) for row in params["rows"]):
        return None  # objects: Sim makes rows of them by the first row of the sheet
    block = Settings("", settings, texts)
    params |= _account(block, service, spec.params["properties"])
    if spec.check is not None and any(found.code != "required" for found in spec.check(params)):
        return None
    lost = _unread(operation, service, settings)
    if lost:
        hint = "Check whether the block needs them."
        block.lose(f"These settings are not imported: {', '.join(lost)}.", hint)
    return spec.type, params, block.losses


def _operation(service: str, settings: Mapping[str, Any]) -> Operation | None:
    row = SERVICES.get(service, {})
    named = settings.get("operation") or row.get("default")
    if service == "slack" and (settings.get("destinationType") == "dm" or settings.get("files") not in NOTHING):
        return None
    line = row.get("operations", {}).get(named) if isinstance(named, str) else None
    return None if line is None else _operation_of(line)


def _value(field: Field, settings: Mapping[str, Any], texts: Texts) -> Any:
    found = next((settings[name] for name in field.names if settings.get(name) not in NOTHING), None)
    match field.kind:
        case "number" | "json" | "rows":
            return texts.value(parse_json(found))
        case "list" if isinstance(found, str) and "<" not in found:
            return [texts.text(item.strip()) for item in found.split(",") if item.strip()]
        case _:
            return texts.value(found)


def _range(settings: Mapping[str, Any], texts: Texts) -> str:
    """Newer blocks of Google Sheets have separate settings for the sheet and the cells."""
    sheet = next((settings[name] for name in ("sheetName", "manualSheetName") if settings.get(name)), "")
    cells = settings.get("cellRange")
    parts = [texts.text(part) for part in (sheet, cells) if isinstance(part, str) and part]
    return "!".join(parts) if sheet else ""


def _account(block: Settings, service: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params for the account. A token that was an environment name stays one. A connection replaces
    accounts, and tokens in the document; a secret does if the service can have no connection."""
    names = SERVICES[service].get("secrets", ["botToken"])
    title = title_of(service)
    given = [block.secret(name, f"Its {title} credential") for name in names]
    if all(given):
        return {"credential": ":".join(filter(None, given))}
    block.losses.clear()
    if "connection" in properties:
        hint = f'Create a connection with the name "{service}", or choose another one in the block.'
        block.lose(f"Its {title} account is not imported.", hint)
        return {"connection": service}
    name = f"{service.upper()}_CREDENTIAL"
    hint = f"Store the secret {name}, or choose another one in the block."
    block.lose(f"Its {title} credential is not imported.", hint)
    return {"credential": f"${{{name}}}"}


def _unread(operation: Operation, service: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the settings with a value that are not used here. Sim keeps those of other operations, too."""
    read = {name for field in operation.fields.values() for name in field.names} | _FORM
    if service == "google_sheets":
        read |= {"sheetName", "manualSheetName", "cellRange"}
    left = (name for name, value in settings.items() if name not in read and value not in NOTHING)
    return sorted(name for name in left if _SAME.get(name) != settings[name])[:_SHOWN_MAX]


def service_of(kind: str) -> str:
    """Sim's block type without its version: `gmail_v2` -> `gmail`."""
    return _VERSION.sub("", kind)


def title_of(kind: str) -> str:
    """`google_sheets_v2` -> `Google Sheets`."""
    service = service_of(kind)
    return _SIM["titles"].get(service) or service.replace("_", " ").title()


def advice(kind: str) -> str:
    """Return the next step for a block of this type."""
    service = service_of(kind)
    if service in SERVICES:
        return f"Replace it with the block connector.{service}."
    return str(_SIM["advice"].get(service, _ANY))


def tool_of(tool: Mapping[str, Any], taken: Collection[str], texts: Texts) -> tuple[dict[str, Any], list[Loss]]:
    """(a tool in its place, what was lost). `taken`: names of the tools before it."""
    kind = str(tool.get("type") or "")
    title = str(tool.get("title") or title_of(kind or "a tool"))[:80]
    asked = mapping(mapping(tool.get("schema")).get("function"))
    operation = str(tool.get("operation") or "")
    name = str(asked.get("name") or "_".join(filter(None, (title, operation))))
    found: dict[str, Any] = {"name": _free_name(name, taken)}
    if about := str(asked.get("description") or (operation and f"{title}: {operation}") or title):
        found["description"] = about
    if (made := _connector_tool(tool, kind, texts)) is not None:
        params, losses = made
        return {**found, **params}, losses
    if arguments := mapping(asked.get("parameters")):
        found["arguments"] = dict(arguments)
    hint = {
        "workflow": "Import that workflow, too, and choose it in the tool.",
        "custom-tool": "Make a workflow of its code, and choose it in the tool.",
    }.get(kind) or "Use an http block that calls the service in the tool, or choose a workflow that does."
    message = f'Its tool "{title}" is not imported. The agent fails when the model calls it.'
    return {**found, "workflow": missing_workflow(title, "Sim")}, [Loss(message, hint)]


def _connector_tool(tool: Mapping[str, Any], kind: str, texts: Texts) -> tuple[dict[str, Any], list[Loss]] | None:
    """Return an operation of a connector as a tool: the model fills in the fields that the tool leaves open."""
    settings = {**mapping(tool.get("params")), "operation": tool.get("operation")}
    made = connector(kind, settings, texts, texts.catalog)
    spec = None if made is None or texts.catalog is None else texts.catalog.get(made[0])
    if made is None or spec is None or spec.check is None:
        return None
    type, params, losses = made
    arguments: dict[str, Any] = {}
    for open_field in spec.check(params):
        field = open_field.pointer.strip("/")
        schema = spec.params["properties"].get(field, {})
        arguments[field] = {"type": schema.get("type", "string"), "description": schema.get("title", field)}
        params[field] = f"{{{{{field}}}}}"
    schema = {"type": "object", "properties": arguments, "required": list(arguments)}
    return {"block": type, "params": params, **({"arguments": schema} if arguments else {})}, losses


def _free_name(name: str, taken: Collection[str]) -> str:
    plain = _NAME.sub("_", name).strip("_-")[:60]
    plain = plain if plain[:1].isalpha() else f"tool_{plain}".rstrip("_")
    numbered = (f"{plain[:60]}_{n}" for n in count(2))
    return plain if plain not in taken else next(each for each in numbered if each not in taken)


def foreign(kind: str, name: str) -> tuple[str, dict[str, Any], list[Loss]]:
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

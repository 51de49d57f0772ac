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
from collections.abc import Callable, Collection, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from compiler.catalog import Catalog
from compiler.imports import missing_workflow, stand_in
from compiler.imports.sim_sql import sql
from compiler.imports.sim_text import (
    NOTHING,
    Loss,
    Settings,
    Texts,
    fits,
    is_number,
    mapping,
    number_in,
    parse_json,
)

NOTES_MAX: Final = 4_000
_VERSION: Final = re.compile(r"_v\d+$")
_SECRET: Final = re.compile(r"credential|secret|token|password|api_?key|access_?key", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}")
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_ANY: Final = "Replace it with an http block that calls the service, or a connector made of its OpenAPI description."
# Fields of the account, and switches of Sim's form, are left out without a loss.
_FORM: Final = frozenset(
    {"operation", "authMethod", "credential", "manualCredential", "destinationType", "messageFormat", "triggerMode"}
    | {"advancedMode", "serverId", "selectedTriggerId"}
)
_SAME: Final = {"contentType": "text", "insertDataOption": "INSERT_ROWS"}  # what ours does in any case
_SHOWN_MAX: Final = 10
_OPEN: Final = re.compile(r"\{\{(\w+)\}\}")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}")
_COMMA: Final = re.compile(r",(?![^<>]*>)")  # in no reference
_SWITCH: Final = {"true": True, "false": False}
_PASSAGES: Final = (
    "Its passages have other names: `text`, `document` and `source` for content, documentName and sourceUrl."
)

_SIM: Final = orjson.loads(Path(__file__).with_name("sim_services.json").read_bytes())
# By Sim's block type. `service`: the connector of another name, or `type`: another block type of ours; `default`: the
# operation of a block that names none; `secrets`: settings that together are the credential; `account`: more of them.
SERVICES: Final[dict[str, Any]] = _SIM["services"]


class Field(NamedTuple):
    """A param, or a member of one, with dots between. `names` are Sim's settings, of which the first with a value
    counts; `fixed` is what Sim's operation always does instead."""

    param: str
    names: tuple[str, ...] = ()
    kind: str = ""
    fixed: Any = None


class Operation(NamedTuple):
    """`condition`: the setting by which Sim's operation is this one."""

    name: str
    fields: tuple[Field, ...]
    condition: str = ""


def _operation_of(line: str) -> Operation:
    """Read an operation of the table: the name of ours, then our params with Sim's settings (of the same name without
    `=`). Their values are made by the schema of the param, if no `kind:` stands before them. `param!VALUE` is fixed."""
    name, *words = line.split()
    fields: list[Field] = []
    for word in words:
        param, _, always = word.partition("!")
        if always:
            listed = always[1:-1].split(",") if always.startswith("[") else _SWITCH.get(always, always)
            fields.append(Field(param, fixed=listed))
            continue
        param, _, settings = word.partition("=")
        kind, _, names = (settings or param).rpartition(":")
        fields.append(Field(param, tuple(names.split("|")), kind))
    return Operation(name, tuple(fields))


def connector(
    kind: str, settings: Mapping[str, Any], texts: Texts, catalog: Catalog | None, *, tool: bool = False
) -> tuple[str, dict[str, Any], list[Loss]] | None:
    """Return our type, our params, and the losses, or None if no operation in the catalog does the same."""
    kind = service_of(kind)
    row = SERVICES.get(kind, {})
    service = str(row.get("service", kind))
    spec = None if catalog is None else catalog.get(str(row.get("type") or f"connector.{service}"))
    operation = _operation(kind, settings)
    if operation is None:
        return _request(kind, settings, texts, tool=tool) if catalog is not None else None
    if spec is None or (tool and spec.type == "sftp"):  # it is no tool of agents
        return None
    block = Settings("", settings, texts)
    if spec.type == "sql":  # the model of an agent may not write the text of a query
        return None if tool and settings.get("query") in NOTHING else ("sql", sql(kind, block), block.losses)
    properties = spec.params["properties"]
    params: dict[str, Any] = {"operation": operation.name}
    unfit: list[str] = []
    for field in operation.fields:
        param, *members = field.param.split(".")
        schema = properties[param] if not members else {}
        name, value = _value(field, settings, schema, texts)
        if value in NOTHING and field.fixed is None:
            continue
        value = next((one for one in schema.get("enum", ()) if str(one).lower() == str(value).lower()), value)
        if not fits(value, schema):
            unfit.append(name)
            continue
        inside = params
        for step, below in zip((param, *members), members, strict=False):
            inside = inside.setdefault(step, {})
            param = below
        inside[param] = value
    if kind == "google_sheets" and "range" not in params and (cells := _range(settings, texts)):
        params["range"] = cells
    rows = params.get("rows") if kind == "google_sheets" else None
    if isinstance(rows, list) and not all(isinstance(row, list | str) for row in rows):
        return None  # objects: Sim makes rows of them by the first row of the sheet
    if "credential" in properties:
        params |= _account(block, kind, service, properties)
    if spec.type == "sftp":
        params |= _at_sftp(block, params)
    if spec.check is not None and any(found.code != "required" for found in spec.check(params)):
        return None
    if lost := sorted({*_unread(operation, kind, settings), *unfit})[:_SHOWN_MAX]:
        hint = "Check whether the block needs them."
        block.lose(f"These settings are not imported: {', '.join(lost)}.", hint)
    if kind == "knowledge" and operation.name == "search" and not tool:
        block.lose(_PASSAGES, "Change what reads them.")
    return spec.type, params, block.losses


def _request(
    kind: str, settings: Mapping[str, Any], texts: Texts, *, tool: bool
) -> tuple[str, dict[str, Any], list[Loss]] | None:
    """Return an http block that calls a service without a connector, or None if the table has no such request."""
    row = _SIM["requests"].get(kind, {}).get(settings.get("operation"))
    if row is None:
        return None
    block = Settings("", settings, texts)
    params: dict[str, Any] = _filled(row, settings, texts, tool)
    if key := block.secret("apiKey", f"Its {title_of(kind)} key"):
        params["headers"] = {**params.get("headers", {}), "Authorization": f"Bearer {key}"}
        return "http", params, block.losses
    hint = f'Create a connection with the name "{kind}", or choose another one in the block.'
    block.lose(f"Its {title_of(kind)} account is not imported.", hint)
    return "http", {**params, "connection": kind}, block.losses


def _filled(part: Any, settings: Mapping[str, Any], texts: Texts, tool: bool) -> Any:
    """Put settings in the place of `{{name}}`. The model of an agent writes those that a tool leaves open."""
    if isinstance(part, Mapping):
        return {name: _filled(value, settings, texts, tool) for name, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, settings, texts, tool) for value in part]

    def put(found: re.Match[str]) -> str:
        value = settings.get(found[1])
        return texts.text(str(value)) if value not in NOTHING else found[0] if tool else ""

    return _OPEN.sub(put, part)


def is_ours(kind: str, settings: Mapping[str, Any]) -> bool | None:
    """Return whether a block type of ours that is no connector does the same; None if there is none of this name."""
    kind = service_of(kind)
    return _operation(kind, settings) is not None if "type" in SERVICES.get(kind, {}) else None


def _operation(kind: str, settings: Mapping[str, Any]) -> Operation | None:
    row = SERVICES.get(kind, {})
    named = settings.get("operation") or row.get("default")
    if kind == "slack" and (settings.get("destinationType") == "dm" or settings.get("files") not in NOTHING):
        return None
    for key, line in row.get("operations", {}).items():
        name, _, condition = key.partition("?")
        setting, _, wanted = condition.partition("=")
        given = settings.get(setting)
        if name == named and (not setting or (given not in NOTHING and wanted in ("", given))):
            return _operation_of(line)._replace(condition=setting)
    return None


def _value(field: Field, settings: Mapping[str, Any], schema: Mapping[str, Any], texts: Texts) -> tuple[str, Any]:
    """Return the setting that counts, and its value as our param has it."""
    name = next((name for name in field.names if settings.get(name) not in NOTHING), "")
    found = settings.get(name)
    if field.fixed is not None or not name:
        return name, field.fixed
    kind = field.kind or schema.get("type")
    match kind:
        case "number" | "integer":
            return name, texts.value(number_in(found))
        case "boolean":
            return name, _SWITCH.get(found, found) if isinstance(found, str) else found
        case "object" | "json" | "rows":
            return name, texts.value(parse_json(found))
        case "array" | "list":
            parts = _parts(found)
            plain = "items" in schema or kind == "list"
            return name, texts.value(parts if plain or isinstance(parts, str) else [number_in(part) for part in parts])
        case "emails" | "recipients" | "ids":
            shape = _SHAPES[kind]
            parts = _parts(found)
            return name, [shape(texts.value(part)) for part in (parts if isinstance(parts, list) else [parts])]
        case "where" if isinstance(found, str) and not found.startswith("("):
            return name, texts.text(f"({','.join(part.replace('=', '.', 1) for part in found.split('&'))})")
        case "order" if isinstance(found, str):
            return name, texts.text(".".join(found.lower().rsplit(maxsplit=1)) if " " in found.strip() else found)
        case "label" if isinstance(found, str) and "<" not in found and "{{" not in found:
            return name, texts.text(found.partition("://")[2] or found).partition(".")[0]
        case _:
            return name, texts.value(str(found) if is_number(found) and kind == "string" else found)


_SHAPES: Final[dict[str, Callable[[Any], Any]]] = {
    "emails": lambda one: {"email": one},
    "recipients": lambda one: {"emailAddress": {"address": one}},
    "ids": lambda one: {"id": one},
}


def _parts(found: Any) -> Any:
    """Return the items of a list, of its JSON, or of a text with commas; a reference stays one."""
    parsed = parse_json(found)
    if isinstance(parsed, list):
        return parsed
    if not isinstance(found, str):
        return [found]
    parts = [part.strip() for part in _COMMA.split(found) if part.strip()]
    return found if "<" in found and len(parts) == 1 else parts


def _range(settings: Mapping[str, Any], texts: Texts) -> str:
    """Newer blocks of Google Sheets have separate settings for the sheet and the cells."""
    sheet = next((settings[name] for name in ("sheetName", "manualSheetName") if settings.get(name)), "")
    cells = settings.get("cellRange")
    parts = [texts.text(part) for part in (sheet, cells) if isinstance(part, str) and part]
    return "!".join(parts) if sheet else ""


def _account(block: Settings, kind: str, service: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params for the account. A token that was an environment name stays one. A connection replaces
    accounts, and tokens in the document; a secret does if the service can have no connection."""
    names = SERVICES[kind].get("secrets", ())
    title = title_of(service)
    given = [block.secret(name, f"Its {title} credential") for name in names]
    if given and all(given):
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


def _at_sftp(block: Settings, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params for the server, and for a file in a folder."""
    host, port = block.text("host").strip(), block.text("port").strip() or "22"
    hint = "Create a connection of the kind SSH with this name, and with the host key of the server."
    block.lose('Its sign-in is not imported: it uses the connection "sftp".', hint)
    made: dict[str, Any] = {"connection": "sftp"}
    if _HOST.fullmatch(f"{host}:{port}"):
        made["server"] = f"{host}:{port}"
    else:
        block.lose("Its server is not imported.", "Write it in the block, as host:port.")
    if params["operation"] == "write":
        made["path"] = f"{str(params.get('path', '')).rstrip('/')}/{block.texts.text(block.text('fileName'))}"
        made |= {"overwrite": False} if block.get("overwrite") is False else {}
    if params["operation"] == "read":
        block.lose(
            "Its output has the file, and no content.", "Read the file with a file block where its content is used."
        )
    return made


def _unread(operation: Operation, kind: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the settings with a value that are not used here. Sim keeps those of other operations, too."""
    read = {name for field in operation.fields for name in field.names} | _FORM
    read |= {operation.condition, *SERVICES[kind].get("secrets", ()), *SERVICES[kind].get("account", ())}
    if kind == "google_sheets":
        read |= {"sheetName", "manualSheetName", "cellRange"}
    left = (name for name, value in settings.items() if name not in read and value not in NOTHING)
    return [name for name in left if _SAME.get(name) != settings[name]]


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
    if row := SERVICES.get(service):
        return f"Replace it with the block {row.get('type') or 'connector.' + row.get('service', service)}."
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
    made = connector(kind, settings, texts, texts.catalog, tool=True)
    spec = None if made is None or texts.catalog is None else texts.catalog.get(made[0])
    if made is None or spec is None:
        return None
    type, params, losses = made
    open_here = _OPEN.findall(orjson.dumps(params).decode()) if type == "http" else ()
    arguments: dict[str, Any] = {name: {"type": "string"} for name in open_here}
    for open_field in spec.check(params) if spec.check is not None and type != "http" else ():
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

"""The nodes of n8n that make files, read them, or read pages -> `file` and `http` blocks.

An item of n8n has files beside its json, by name. Here a file is a value: what reads one refers to the last block
before it that makes a file of that name (`Step.file`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from compiler.imports.n8n_services import connection_of
from compiler.imports.n8n_step import Made, Step, located
from compiler.imports.n8n_text import listed
from compiler.imports.sim_text import mapping

_PLACE: Final = re.compile(r"(?<!\$)\{([\w.|!-]+)\}")
_OPTIONAL: Final = re.compile(r"\[\[(.*?)\]\]")
_SECRET: Final = re.compile(r"\$\{(\w+)\}")
_PLAIN: Final = re.compile(r"<[^<>]+>")
# Operations of Extract From File: how it is read, and the field of the item that gets it.
_READ: Final = {
    "pdf": ("text", "text"), "text": ("text", "data"), "xml": ("text", "data"), "fromIcs": ("text", "data"),
    "html": ("text", "data"), "fromJson": ("json", "data"), "binaryToPropery": ("base64", "data"),
}  # fmt: skip
_ENTRIES: Final = (
    "<@.entries>.map((one) => ({ type: { folder: 'd', link: 'l' }[one.kind] ?? '-', name: one.name, size: one.size, "
    "modifyTime: new Date(one.modified).toISOString(), path: one.path }))"
)
_TABLES: Final = ("", "csv", "xlsx", "fromFile")


def _reading(step: Step, content: str | None, read_as: str, into: str, *, keeps: bool = True, **more: Any) -> Made:
    params = {"operation": "read", **({"content": content} if content else {}), "read_as": read_as, **more}
    return Made("file", params, "", fields=(((into,), "result"),), keeps=keeps)


def extract(step: Step) -> Made | None:
    """Extract From File; Spreadsheet File; Move Binary Data, which also makes files."""
    operation = step.text("operation")
    if operation == "toFile":
        return convert(step)
    file = step.file("binaryPropertyName")
    if operation in _READ:
        read_as, into = _READ[operation]
        return _reading(step, file, read_as, step.text("destinationKey") or into, keeps=False)
    if operation not in _TABLES or step.text("fileFormat") in ("xls", "ods"):
        return None
    params = {"operation": "read", **({"content": file} if file else {}), "read_as": "table"}
    if sheet := step.value("options", "sheetName"):
        params["sheet"] = sheet
    return Made("file", params, None, "<@.result>")


def move(step: Step) -> Made | None:
    if step.text("mode") == "jsonToBinary":
        return convert(step)
    read_as = "text" if step.get("setAllData") is False and step.get("options", "jsonParse") is not True else "json"
    file = step.file("sourceKey")
    if step.get("setAllData") is False:
        return _reading(step, file, read_as, step.text("destinationKey") or "data")
    params = {"operation": "read", **({"content": file} if file else {}), "read_as": "json"}
    return Made("file", params, None, "[<@.result> ?? []].flat()")


def convert(step: Step) -> Made | None:
    """Convert to File and its relatives: the item has a file then."""
    way = step.text("operation") or "csv"
    if step.node.kind == "moveBinaryData":
        way = "toJson" if step.get("convertAllData") is not False else "toText"
    if step.node.kind == "spreadsheetFile":
        way = step.text("fileFormat") or "xls"
    if way in ("xls", "ods"):
        step.lose("Its table becomes an Excel workbook (.xlsx).", "Spreadsheets can open it; check who reads the file.")
        way = "xlsx"
    if way in ("toText", "toBinary"):
        place = step.text("sourceProperty") or step.text("sourceKey") or "data"
        code = place.strip("={} ") if place.startswith("=") else f"$json.{place}"
        content = step.texts.value(f"={{{{ {code} }}}}", "content")
    elif way in ("toJson", "csv", "xlsx"):
        items = step.items()
        content = items if _PLAIN.fullmatch(items) else step.texts.value(f"={{{{ {items} }}}}", "content")
    else:
        return None
    suffix = {"csv": "csv", "xlsx": "xlsx", "toJson": "json", "toText": "txt", "toBinary": "bin"}[way]
    name = step.texts.value(step.get("options", "fileName", otherwise=f"file.{suffix}"), "name")
    params = {"name": name, "content": content}
    if written := {"csv": "csv", "xlsx": "excel", "toBinary": "base64"}.get(way):
        params["format"] = written
    if media := step.value("options", "mimeType"):
        params["media_type"] = media
    into = step.text("binaryPropertyName") or step.text("destinationKey") or "data"
    return Made("file", params, None if way in ("toText", "toBinary") else "", files={into: ""})


def sftp(step: Step) -> Made | None:
    """Return an `sftp` block for the FTP node with the protocol SFTP."""
    if step.text("protocol") != "sftp":
        return None
    name = connection_of(step.node, "sftp")
    hint = f'Create a connection of the kind SSH with the name "{name}", and write the server in the block.'
    step.lose("Its server and account are not imported.", hint)
    if step.get("options", "recursive") is True or step.get("recursive") is True:
        step.lose("It is for one folder here, without those below.", "Use a loop over the folders.")
    made: dict[str, Any] = {"connection": name, "path": step.value("path", otherwise="")}
    match step.text("operation") or "download":
        case "list":
            made |= {"operation": "list", "path": step.value("path", otherwise="/")}
            return Made("sftp", made, None, _ENTRIES)
        case "download":
            into = step.text("binaryPropertyName") or "data"
            return Made("sftp", {"operation": "read", **made}, None, files={into: ".file"})
        case "upload":
            is_text = step.get("binaryData") is False
            content = step.value("fileContent", otherwise="") if is_text else step.file("binaryPropertyName")
            made |= {"content": content} if content is not None else {}
            return Made("sftp", {"operation": "write", **made, "make_folders": True}, None)
        case "rename":
            made |= {"path": step.value("oldPath", otherwise=""), "to": step.value("newPath", otherwise="")}
            made |= {"make_folders": True} if step.get("options", "createDirectories") is True else {}
            return Made("sftp", {"operation": "move", **made})
        case "delete":
            return Made("sftp", {"operation": "delete", **made})
    return None


def html(step: Step) -> Made | None:
    if step.text("operation") in ("", "generateHtmlTemplate") and step.node.kind == "html":
        return Made("set", {"value": {"html": step.value("html", otherwise="")}})
    if step.text("operation") not in ("", "extractHtmlContent"):
        return None
    select: dict[str, Any] = {}
    for one in listed(step.get("extractionValues"), "values"):
        rule: dict[str, Any] = {"css": step.texts.value(one.get("cssSelector", ""), "selector")}
        kind = str(one.get("returnValue") or "text")
        if kind != "text":
            rule["get"] = {"html": "html", "value": "value"}.get(kind, str(one.get("attribute") or "href"))
        if one.get("returnArray") is True:
            rule["all"] = True
        if one.get("skipSelectors"):
            rule["without"] = step.texts.value(one["skipSelectors"], "without")
        select[str(one.get("key") or "value")] = rule if len(rule) > 1 else rule["css"]
    place = step.text("dataPropertyName") or "data"
    binary = step.text("sourceData") == "binary"
    content = step.file("dataPropertyName") if binary else step.texts.value(f"={{{{ $json.{place} }}}}", "content")
    params = {"operation": "read", **({"content": content} if content else {}), "read_as": "fields", "select": select}
    return Made("file", params, ".result")


def markdown(step: Step) -> Made:
    back = step.text("mode") == "markdownToHtml"
    content = step.value("markdown" if back else "html", otherwise="")
    return _reading(step, content, "html" if back else "markdown", step.text("destinationKey") or "data")


# --- requests of services, by a table ---


@cache
def requests() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("n8n_requests.json").read_bytes())
    return found


def request_of(step: Step) -> Mapping[str, Any] | None:
    """Return the row of the table for a node, or None."""
    rows = mapping(requests().get(step.node.kind))
    resource, _, operation = str(rows.get("default", "/")).partition("/")
    usual = mapping(rows.get("usual")).get(step.text("resource"), operation)
    chosen = f"{step.text('resource') or resource}/{step.text('operation') or usual}"
    row = rows.get(f"{chosen}:{step.text('searchMethod')}", rows.get(chosen))
    applies = isinstance(row, Mapping) and ("when" not in row or step.get(row["when"]) is True)
    return row if applies else None


def request(step: Step, row: Mapping[str, Any]) -> Made:
    """Return the last of the blocks of a row: the others run before it."""
    *before, last = row["blocks"]
    has_account = step.text(row["account"]) not in ("", "none") if "account" in row else True
    ids: list[str] = []
    for n, one in enumerate(before, 1):
        ids.append(step.first(one["type"], _params(step, one, ids, has_account), f"step_{n}"))
    params = _params(step, last, ids, has_account)
    if "note" in row:
        step.lose(row["note"], "Check whether that fits.")
    files = {step.text(*str(row["file"]).split(".")) or "data": row["at"]} if "file" in row else {}
    fields = tuple(((name,), place) for name, place in row.get("fields", {}).items())
    return Made(last["type"], params, row.get("out"), row.get("many"), fields=fields, files=files)


def _params(step: Step, block: Mapping[str, Any], before: list[str], has_account: bool) -> dict[str, Any]:
    params: dict[str, Any] = {name: _filled(step, value, name, before) for name, value in block["params"].items()}
    secrets = sorted(set(_SECRET.findall(orjson.dumps(block["params"]).decode())))
    if secrets:
        step.lose("Its credential is not imported.", f"Store the secrets {' and '.join(secrets)}.")
    elif has_account and block["type"] != "file":
        params["connection"] = name = connection_of(step.node, step.node.kind)
        hint = f'Create a connection with the name "{name}", or choose another one in the block.'
        step.lose("Its account is not imported.", hint)
    return {name: value for name, value in params.items() if value not in (None, "")}


def _filled(step: Step, value: Any, name: str, before: list[str]) -> Any:
    """`{a.b|c}` is the first setting that has a value, with `!` a value itself; `@a` the file that a setting names,
    `@a?b` only if it is sent as a file; `<#1` a block before it; `[[ ]]` is left out without its settings."""
    if isinstance(value, Mapping):
        made = {key: _filled(step, one, key, before) for key, one in value.items()}
        return {key: one for key, one in made.items() if one is not None}
    if not isinstance(value, str):
        return value
    if value.startswith("@"):
        file, _, other = value[1:].partition("?")
        return step.file(file) if not other or step.get("binaryData") is True else _setting(step, other, name)
    for n, id in enumerate(before, 1):
        value = value.replace(f"<#{n}.", f"<{id}.")
    if whole := _PLACE.fullmatch(value):
        return _setting(step, whole[1], name)

    def optional(found: re.Match[str]) -> str:
        return found[1] if all(_setting(step, place, name) for place in _PLACE.findall(found[1])) else ""

    return _PLACE.sub(lambda found: str(_setting(step, found[1], name) or ""), _OPTIONAL.sub(optional, value))


def _setting(step: Step, places: str, name: str) -> Any:
    for place in places.split("|"):
        value = place[:-1] if place.endswith("!") else located(step.get(*place.split(".")))
        if value not in (None, ""):
            return step.texts.value(value, name)
    return None

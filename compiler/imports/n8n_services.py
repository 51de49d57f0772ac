"""The nodes of n8n that send something to a service -> blocks: HTTP Request, mail, and connectors by a table.

A field that is empty in the export stays open, as `required` reports. Accounts are not in exports: the block gets the
connection that is named like the credential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from compiler.catalog import Catalog
from compiler.imports.n8n_step import Made, Node, Step
from compiler.imports.n8n_text import Item, listed, prelude, quoted, slug, split
from compiler.imports.sim_text import fits, mapping, number_in, parse_json

_TIMEOUT_MAX_S: Final = 300
_SUFFIX: Final = re.compile(r"(OAuth2Api|OAuth2|Api|OAuth)$")
# The http block sets these itself.
_OWN_HEADERS: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_MARK: Final = re.compile(r"@@(\d+)@@")
_ANSWER: Final = "[<@.body> ?? []].flat().map((one) => (typeof one === 'string' ? { data: one } : one))"
_LISTS: Final = "[{} ?? []].flat()"


def connection_of(node: Node, otherwise: str) -> str:
    """Return the name of the connection: that of the credential in n8n, or of its kind."""
    for kind, one in mapping(node.raw.get("credentials")).items():
        name = mapping(one).get("name")
        return slug(str(name)) if isinstance(name, str) and name else slug(_SUFFIX.sub("", str(kind)))
    kind = str(node.params.get("nodeCredentialType") or node.params.get("genericAuthType") or otherwise)
    return slug(_SUFFIX.sub("", kind))


def http(step: Step) -> Made:
    params: dict[str, Any] = {"url": step.value("url", otherwise=""), "method": _method(step)}
    query = _pairs(step, "queryParameters", "queryParametersUi", "queryParametersJson", "jsonQuery")
    headers = _pairs(step, "headerParameters", "headerParametersUi", "headerParametersJson", "jsonHeaders")
    headers = {key: value for key, value in headers.items() if key and key.lower() not in _OWN_HEADERS}
    if query:
        params["query"] = query
    if params["method"] not in ("GET", "HEAD") or step.get("sendBody") is True:
        body, kind = _body(step)
        if body not in (None, "", {}):
            params["body"] = body
            if kind and not any(key.lower() == "content-type" for key in headers):
                headers["Content-Type"] = kind
    if headers:
        params["headers"] = headers
    if step.text("authentication") not in ("", "none"):
        name = connection_of(step.node, "account")
        params["connection"] = name
        hint = f'Create a connection with the name "{name}", or choose another one in the block.'
        step.lose("Its account is not imported.", hint)
    timeout = number_in(step.get("options", "timeout"))
    if isinstance(timeout, int | float) and timeout > 0:
        params["timeout_s"] = min(timeout / 1000, _TIMEOUT_MAX_S)
    if step.get("options", "pagination") or step.get("options", "batching"):
        step.lose("Its pages or batches are not imported: it sends one request.", "Use a loop around the block.")
    answer = mapping(step.get("options", "response", "response"))
    if answer.get("neverError") is True:
        params["fail_on_status"] = False
    if answer.get("fullResponse") is True or step.get("options", "fullResponse") is True:
        return Made(
            "http", params, "", fields=((("statusCode",), "status"), (("body",), "body"), (("headers",), "headers"))
        )
    form = str(answer.get("responseFormat") or step.text("responseFormat"))
    if form == "file":
        name = str(answer.get("outputPropertyName") or step.text("dataPropertyName") or "data")
        return Made("http", {**params, "save_file": True}, None, files={name: ".body"})
    if form in ("text", "string"):
        name = str(answer.get("outputPropertyName") or step.text("dataPropertyName") or "data")
        return Made("http", params, "", fields=(((name,), "body"),))
    if params["method"] in ("GET", "HEAD") and not _reads_whole(step):
        return Made("http", params, None, _ANSWER)
    return Made("http", params, ".body")


def _reads_whole(step: Step) -> bool:
    """So deep inside others, an answer is taken for one item."""
    return sum(1 for _ in step.region.chain()) > 5


def _method(step: Step) -> str:
    found = step.text("method") or step.text("requestMethod") or "GET"
    return found if found in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS") else "GET"


def _pairs(step: Step, *places: str) -> dict[str, Any]:
    """Names with values: a list of parameters, or JSON."""
    for place in places:
        found = step.get(place)
        rows = listed(found, "parameters") or listed(found, "parameter")
        if rows:
            named = ((str(row.get("name") or "").removeprefix("="), row) for row in rows)
            return {name: _part(step, row, name) for name, row in named if name}
        if isinstance(found, str) and isinstance(parsed := _parsed(found.removeprefix("=")), Mapping):
            return {str(key): step.texts.value(_deep(value), str(key)) for key, value in parsed.items()}
    return {}


def _part(step: Step, row: Mapping[str, Any], name: str) -> Any:
    if row.get("parameterType") != "formBinaryData":
        return step.texts.value(row.get("value", ""), name)
    found = step.texts.scope.file_of(str(row.get("inputDataFieldName") or "data").removeprefix("="))
    if found is None:
        step.lose(f'It sends a file as "{name}", which no node before it makes.', "Choose the file in the block.")
    return None if found is None else f"<{found}>"


def _template(value: Any) -> Any:
    return f"={value}" if isinstance(value, str) and "{{" in value else value


def _body(step: Step) -> tuple[Any, str]:
    kind = step.text("contentType") or step.text("bodyContentType") or "json"
    rows = _pairs(step, "bodyParameters", "bodyParametersUi")
    raw = step.get("jsonBody") if step.text("specifyBody") == "json" else None
    raw = step.get("bodyParametersJson") if raw is None and step.get("jsonParameters") is True else raw
    if kind in ("form-urlencoded", "multipart-form-data"):
        media = "multipart/form-data" if kind == "multipart-form-data" else "application/x-www-form-urlencoded"
        return rows or step.texts.value(step.get("body"), "body"), media
    if kind == "raw":
        return step.value("body", otherwise=""), step.text("rawContentType") or "text/plain"
    if kind == "binaryData":
        return step.file("inputDataFieldName"), ""
    if raw is None:
        return rows, ""
    if not isinstance(raw, str):
        return step.texts.value(raw), ""
    parsed = _parsed(raw.removeprefix("="))
    if not isinstance(parsed, str):
        return step.texts.value(_deep(parsed), "body"), ""
    made = step.texts.value(raw.strip(), "body")
    whole = raw.startswith("=") and len([*split(raw[1:].strip())]) == 1
    return made, "" if whole and isinstance(made, str) and "JSON.stringify" not in raw else "application/json"


def _parsed(text: str) -> Any:
    """Parse JSON with expressions in its texts. In those a backslash is one of JavaScript, not of JSON."""
    pieces = [*split(text)]
    codes = [piece for piece, is_code in pieces if is_code]
    marks = iter(range(len(codes)))
    parsed = parse_json("".join(f"@@{next(marks)}@@" if is_code else piece for piece, is_code in pieces))

    def back(value: Any) -> Any:
        if isinstance(value, list):
            return [back(one) for one in value]
        if isinstance(value, Mapping):
            return {back(key): back(one) for key, one in value.items()}
        if not isinstance(value, str):
            return value
        return _MARK.sub(lambda found: f"{{{{ {codes[int(found[1])]} }}}}", value)

    return text if isinstance(parsed, str) else back(parsed)


def _deep(value: Any) -> Any:
    if isinstance(value, list):
        return [_deep(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _deep(one) for key, one in value.items()}
    return _template(value)


def email(step: Step) -> Made | None:
    if step.text("operation") == "sendAndWait":
        return None
    params: dict[str, Any] = {}
    to, body = step.value("toEmail"), step.value("html") or step.value("text") or step.value("message")
    subject, cc = step.value("subject"), step.value("options", "ccEmail") or step.value("ccEmail")
    for key, value in (("to", to), ("cc", cc), ("subject", subject), ("body", body), ("from", step.value("fromEmail"))):
        if value not in (None, ""):
            params[key] = value
    named = (step.text("options", "attachments") or step.text("attachments")).removeprefix("=").split(",")
    files = [step.texts.scope.file_of(name.strip()) for name in named if name.strip()]
    if None in files:
        step.lose("It attaches a file, which no node before it makes.", "Choose the file in the block.")
    if given := [f"<{file}>" for file in files if file is not None]:
        params["attachments"] = given
    return Made("email", params, "")


# For each operation: the command, the settings that are its arguments, the setting with the name of its answer.
_COMMANDS: Final = {
    "delete": ("DEL", ["key"], ""), "get": ("GET", ["key"], "propertyName"), "incr": ("INCR", ["key"], "key"),
    "info": ("INFO", [], ""), "keys": ("KEYS", ["keyPattern"], ""), "llen": ("LLEN", ["list"], "list"),
    "pop": ("LPOP", ["list"], "propertyName"), "publish": ("PUBLISH", ["channel", "messageData"], ""),
    "push": ("LPUSH", ["list", "messageData"], ""), "set": ("SET", ["key", "value"], ""),
}  # fmt: skip
_GETS: Final = {"hash": ("HGETALL", []), "list": ("LRANGE", [0, -1]), "sets": ("SMEMBERS", [])}
_PUTS: Final = {"hash": ("HSET", "Object.entries(made).flat()"), "sets": ("SADD", "made")}


def redis(step: Step) -> Made | None:
    operation, kind = step.text("operation") or "info", step.text("keyType") or "automatic"
    if operation not in _COMMANDS or (operation == "set" and kind == "list"):
        return None
    command, places, name = _COMMANDS[operation]
    arguments: Any = [step.value(place, otherwise="") for place in places]
    ttl = step.value("ttl", otherwise=60) if step.get("expire") is True else None
    if operation in ("push", "pop") and step.get("tail") is True:
        command = command.replace("L", "R", 1)
    elif operation == "get" and kind in _GETS:
        command, more = _GETS[kind]
        arguments += more
    elif operation == "incr" and ttl is not None:
        script = "local n = redis.call('INCR', KEYS[1]) redis.call('EXPIRE', KEYS[1], ARGV[1]) return n"
        command, arguments = "EVAL", [script, 1, *arguments, ttl]
    elif operation == "set" and kind in _PUTS:
        command, js = _PUTS[kind]
        read = "((given) => (typeof given === 'string' ? JSON.parse(given) : given))"
        js = f"((made) => [{step.js('key')}, ...{js}])({read}({step.js('value')}))"
        arguments = step.texts.value(f"={{{{ {js} }}}}", "arguments")
        if ttl is not None:
            step.lose("Its time to live is not imported.", "Add a block with the command EXPIRE after it.")
    elif operation == "set" and ttl is not None:
        arguments += ["EX", ttl]
    if operation in ("get", "set") and kind == "automatic":
        step.lose("It finds out the type of the key or value; here it is a text.", "Change the command otherwise.")
    if operation in ("info", "keys"):
        step.lose("Its answer is not taken apart.", "INFO gives a text and KEYS names: use a function, or MGET.")
    step.lose("Its server is not imported.", "Store the secret REDIS_URL, the address: redis://user:password@host/0.")
    params = {"server": "${REDIS_URL}", "command": command, **({"arguments": arguments} if arguments else {})}
    if operation in ("delete", "publish", "push", "set"):
        return Made("redis", params, None)
    field = "keys" if operation == "keys" else step.text(name) or "propertyName" if name else "info"
    if field.startswith("="):
        field = "result"
        step.lose("Its answer has a name that depends on data.", "Here it is the field result of the item.")
    path = (field,) if name != "propertyName" or step.get("options", "dotNotation") is False else field.split(".")
    if operation == "pop":
        params["parse_json"] = True
    return Made("redis", params, "", fields=((tuple(path), "result"),))


# connectors


@cache
def services() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("n8n_services.json").read_bytes())
    return found


def service_of(kind: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return the name of our connector, and the row of the table, of a node or of a node as a tool."""
    bare = kind.removesuffix("Tool")
    row = services().get(bare)
    return None if row is None else (str(row.get("service") or slug(bare)), row)


def connector(step: Step, catalog: Catalog | None) -> Made | None:
    """Return None if no operation of the catalog does the same."""
    found = service_of(step.node.kind)
    spec = None if found is None or catalog is None else catalog.get(f"connector.{found[0]}")
    if found is None or spec is None:
        return None
    service, row = found
    resource, _, operation = str(row["default"]).partition("/")
    chosen = f"{step.text('resource') or resource}/{step.text('operation') or operation}"
    if chosen == "record/update" and not step.get("columns", "value", "id") and not step.get("id"):
        chosen = "record/upsert"
        step.lose("A record that is not there is added; n8n changes records only.", "Check that the record is there.")
    line = row["operations"].get(chosen)
    if line is None:
        return None
    name, *words = line.split()
    params: dict[str, Any] = {"operation": name}
    row_of = _sheet_row(step, params) if chosen in ("sheet/update", "sheet/appendOrUpdate") else ""
    for word in words:
        ours, _, always = word.partition("!")
        if always:
            params[ours] = [always]
            continue
        ours, _, places = word.partition("=")
        kind, _, places = (places or ours).rpartition(":")
        value = next(
            (v for place in places.split("|") if (v := _setting(step, place, kind)) not in (None, "", [])), None
        )
        value = f"<{row_of}.result.{ours}>" if row_of and kind in ("range", "found") else value
        if value is not None and fits(value, spec.params["properties"].get(ours, {})):
            params[ours] = value
        elif value is not None:
            step.lose(f"Its setting {ours} is not imported.", "Check whether the block needs it.")
    if "connection" in spec.params["properties"]:
        params["connection"] = name_of = connection_of(step.node, service)
        hint = f'Create a connection with the name "{name_of}", or choose another one in the block.'
        step.lose("Its account is not imported.", hint)
    else:
        secret = f"{service.upper()}_CREDENTIAL"
        params["credential"] = f"${{{secret}}}"
        step.lose("Its credential is not imported.", f"Store the secret {secret}, or choose another one in the block.")
    items = row.get("items", {}).get(name)
    if name in row.get("passes", ()):  # n8n returns the row, not the answer of the service
        return Made(spec.type, params, None)
    if items is None:
        return Made(spec.type, params, ".result")
    return Made(spec.type, params, None, items if "@" in items else _LISTS.format(f"<@.result.{items}>"))


def _setting(step: Step, place: str, kind: str) -> Any:
    path = place.split(".")
    found = step.get(*path)
    if kind == "rows":
        return _rows(step, mapping(found))
    if kind == "columns" and mapping(found).get("mappingMode") == "autoMapInputData":
        return step.item.value() if step.item is not None else {}
    if kind == "columns":
        chosen = {name: value for name, value in mapping(mapping(found).get("value")).items() if name != "id"}
        return step.texts.value({name: value for name, value in chosen.items() if value is not None})
    if kind == "records":
        return [{"fields": _setting(step, place, "columns")}]
    if kind in ("item", "values"):
        given = {str(one["fieldId"]): step.texts.value(one.get("fieldValue", ""), str(one["fieldId"]))
                 for one in listed(found) if one.get("fieldId")}  # fmt: skip
        return given or (step.item.value() if step.item is not None else {})
    if kind == "where":
        tests = [(one.get("keyName"), one.get("condition", "eq"), one.get("keyValue", "")) for one in listed(found)]
        return "(" + ",".join(f"{key}.{way}.{step.texts.value(value, 'where')}" for key, way, value in tests) + ")"
    if kind == "properties":
        return _properties(step, listed(step.get(*path[:-1]), path[-1]))
    if isinstance(found, Mapping) and "__rl" in found:
        shown = found.get("cachedResultName") if place == "sheetName" else None
        link = re.search(r"/d/([\w-]{20,})", str(found.get("value"))) if found.get("mode") == "url" else None
        found = link[1] if link else shown or found.get("value")
    value = step.texts.value(found, path[-1])
    if kind == "moment":
        return None if value in (None, "") else {"dateTime": value}
    if kind in ("number", "json") and isinstance(value, str):
        return parse_json(value)
    if kind == "list" and isinstance(value, str):
        return [one.strip() for one in value.split(",")]
    return value


def _sheet_row(step: Step, params: Mapping[str, Any]) -> str:
    """Find the row that n8n changes, by the values of some columns. Returns the block that has its range and cells."""
    sheet = next((v for place in ("sheetName", "range") if (v := _setting(step, place, "")) not in (None, "")), "")
    account = {"connection": connection_of(step.node, "google_sheets")}
    asked = {"operation": "read_rows", "spreadsheet": _setting(step, "documentId", ""), "range": sheet, **account}
    read = step.first(
        "connector.google_sheets", {key: value for key, value in asked.items() if value not in (None, "")}, "rows"
    )
    columns = mapping(step.get("columns"))
    keys = columns.get("matchingColumns") or [step.text("columnToMatchOn") or "row_number"]
    older = {str(one["column"]): one.get("fieldValue", "") for one in listed(step.get("fieldsUi"), "values")
             if one.get("column")}  # fmt: skip
    if step.text("columnToMatchOn") and step.get("valueToMatchOn") is not None:
        older[step.text("columnToMatchOn")] = step.get("valueToMatchOn")
    chosen = older or (mapping(columns.get("value")) if columns.get("mappingMode") == "defineBelow" else {})
    item = step.texts.script(chosen) if chosen else step.item.js() if step.item is not None else "{}"
    adds = quoted(step.text("operation") == "appendOrUpdate")
    name = step.texts.script(f"={sheet}") if not str(sheet).startswith("<") else sheet
    js = f"return rowOf(<{read}.result.values> ?? [], {item}, {quoted(keys)}, {name}, {adds});"
    return step.first("function", {"code": prelude(js) + js}, "row")


def _rows(step: Step, columns: Mapping[str, Any]) -> Any:
    """One row: the values by the order of the columns in the export, or all fields of the item."""
    chosen = mapping(columns.get("value"))
    names = [str(one.get("id")) for one in listed(columns, "schema") if one.get("removed") is not True] or list(chosen)
    if columns.get("mappingMode") == "defineBelow" and chosen:
        return [[step.texts.value(chosen.get(name, ""), name) for name in names]]
    js = (step.item or Item("input")).js()
    order = f"{quoted(names)}.map((name) => one[name] ?? '')" if names else "Object.values(one)"
    return [step.texts.value(f"={{{{ ((one) => {order})({js}) }}}}", "row")]


def _properties(step: Step, rows: Any) -> dict[str, Any]:
    """The properties of a page as Notion has them."""
    made: dict[str, Any] = {}
    for row in rows:
        name, _, kind = str(row.get("key") or "").partition("|")
        texts = {"title": "title", "rich_text": "textContent", "url": "urlValue", "email": "emailValue"}
        texts |= {
            "number": "numberValue",
            "checkbox": "checkboxValue",
            "select": "selectValue",
            "phone_number": "phoneValue",
        }
        value = step.texts.value(row.get(texts.get(kind, "")), name)
        if kind in ("title", "rich_text"):
            made[name] = {kind: [{"text": {"content": value or ""}}]}
        elif kind == "select" or kind == "status":
            made[name] = {kind: {"name": step.texts.value(row.get("selectValue") or row.get("statusValue"), name)}}
        elif kind == "date":
            made[name] = {"date": {"start": step.texts.value(row.get("date"), name)}}
        elif kind == "multi_select":
            chosen = row.get("multiSelectValue")
            made[name] = {
                kind: [
                    {"name": step.texts.value(one, name)} for one in (chosen if isinstance(chosen, list) else [chosen])
                ]
            }
        elif kind in texts:
            made[name] = {kind: value}
        else:
            step.lose(f'Its property "{name}" is not imported.', "Set it in the properties.")
    return made

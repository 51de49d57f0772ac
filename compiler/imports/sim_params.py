"""Params of Sim's block types -> ours: one function per type, a table at the end. Types without one keep their
params.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson

from compiler.references import find, normalize, parse

_ENV = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*")
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_UNIT_DEFAULT = "seconds"
# Sim's own switches, which mean nothing here.
_INTERNAL = frozenset(["triggerMode", "advancedMode"])
# Names that mean something here but may be block names there.
_OURS = ("input", "workflow")
# Output fields of another name: (block type, field) -> ours; None: the field is the whole output.
_FIELDS: dict[tuple[str, str], str | None] = {
    ("human_in_the_loop", "submission"): None,
    ("human_in_the_loop", "resumeInput"): None,
    ("api", "data"): "body",
}

Converted = tuple[str, dict[str, Any], list[str]]


class Texts:
    """Translates texts: environment names, and references whose block or field has another name here.

    `blocks`: id -> (Sim's type, name). `env_names` None: every UPPER_CASE name counts as one.
    """

    def __init__(self, blocks: Mapping[str, tuple[str, str]], env_names: Collection[str] | None) -> None:
        self._env_names = env_names
        self._by_name: dict[str, str] = {}
        for block_id, (_, name) in blocks.items():
            self._by_name.setdefault(normalize(name), block_id)
        for block_id in blocks:
            self._by_name.setdefault(normalize(block_id), block_id)
        self._types = {block_id: kind for block_id, (kind, _) in blocks.items()}
        renamed = {kind for kind, _ in _FIELDS}
        self._rename = any(kind in renamed for kind in self._types.values()) or any(n in self._by_name for n in _OURS)

    def output_of(self, block_id: str) -> str:
        """A reference to the whole output of a block; {} when it did not run."""
        return f"<{block_id} ?? {{}}>"

    def text(self, text: str) -> str:
        if "{{" in text:
            text = _ENV.sub(self._env, text)
        return self._references(text) if self._rename and "<" in text else text

    def value(self, value: Any) -> Any:
        """All texts in a JSON value. Its depth is bounded by that of the document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        return value

    def _env(self, match: re.Match[str]) -> str:
        name = match[1]
        known = bool(_UPPER.fullmatch(name)) if self._env_names is None else name in self._env_names
        return f"${{{name}}}" if known else match[0]

    def _references(self, text: str) -> str:
        parts: list[str] = []
        at = 0
        for found in find(text):
            moved = None if found.env else self._reference(found.text)
            if moved is not None:
                parts += (text[at : found.start], f"<{moved}>")
                at = found.end
        return "".join([*parts, text[at:]])

    def _reference(self, text: str) -> str | None:
        parsed = parse(text)
        if parsed is None:
            return None
        first = str(parsed.segments[0])
        block = self._by_name.get(normalize(first))
        if block is None:
            return None
        head = block if normalize(first) in _OURS else first
        rest = text[len(first) :]
        field = str(parsed.segments[1]) if len(parsed.segments) > 1 else ""
        if (self._types[block], field) in _FIELDS and rest.startswith(f".{field}"):
            ours = _FIELDS[self._types[block], field]
            rest = (f".{ours}" if ours else "") + rest[len(field) + 1 :]
        return head + rest if head + rest != text else None


def translate(kind: str, name: str, params: Mapping[str, Any], texts: Texts) -> Converted:
    """(our type, our params, what was lost) of a block that is no container."""
    given = {key: value for key, value in params.items() if key not in _INTERNAL}
    convert = _TABLE.get(kind)
    if convert is None:
        return kind, texts.value(given), []
    losses: list[str] = []
    ours, converted = convert(name, given, texts, losses)
    return ours, converted, losses


def loop_params(config: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """Sim bounds only counted loops; `count: 0` skips the body here. A `for` loop is bounded by its own count."""
    count = _number(config.get("iterations", config.get("count", 5)))
    match config.get("loopType", "for"):
        case "forEach":
            items = config.get("forEachItems", config.get("collection", ""))
            params: dict[str, Any] = {"mode": "each", "items": texts.value(items)}
            if isinstance(items, list | dict) and len(items) > 1000:
                params["max"] = len(items)
        case "while":
            params = {"mode": "while", "condition": _test(config.get("whileCondition"), texts)}
        case "doWhile":
            params = {"mode": "do_while", "condition": _test(config.get("doWhileCondition"), texts)}
        case _:
            params = {"mode": "for", "count": texts.value(count)}
            if isinstance(count, int) and count > 1000:
                params["max"] = count
    return {**params, "results": "all"}


def parallel_params(config: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """Sim runs branches in batches; here `concurrency` is a sliding window of the same size."""
    collection = config.get("distribution", config.get("collection"))
    if config.get("parallelType", "collection" if collection else "count") == "collection":
        params: dict[str, Any] = {"mode": "each", "items": texts.value("" if collection is None else collection)}
    else:
        params = {"mode": "count", "count": texts.value(_number(config.get("count", 1)))}
    batch = _number(config.get("batchSize"))
    if isinstance(batch, int) and batch > 0:
        params["concurrency"] = batch
    return {**params, "results": "all"}


def typed_value(kind: str, value: Any) -> Any:
    """A value whose text has to be read as the type beside it; texts with references stay texts."""
    if not isinstance(value, str) or find(value) or "{{" in value:
        return value
    match kind:
        case "number":
            number = parse_json(value)
            return number if isinstance(number, int | float) and not isinstance(number, bool) else value
        case "boolean":
            return {"true": True, "false": False}.get(value.strip().lower(), value)
        case "object" | "array" | "json":
            return parse_json(value)
        case _:
            return value


def parse_json(value: Any) -> Any:
    """The value of a JSON text; what is no text, or no JSON, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _start(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    fields: list[dict[str, Any]] = []
    given = parse_json(params.get("inputFormat"))
    for item in given if isinstance(given, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str) or not item["name"]:
            continue
        field: dict[str, Any] = {"name": item["name"], "type": _field_type(item.get("type"))}
        if item.get("value") not in (None, ""):
            field["default"] = typed_value(field["type"], item["value"])
        fields.append(field)
    return "start", {"fields": fields} if fields else {}


def _condition(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    given = parse_json(params.get("conditions"))
    for item in given if isinstance(given, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            losses.append("a case that can not be read is left out")
            continue
        title, value = str(item.get("title") or ""), str(item.get("value") or "")
        case = {"id": item["id"], "title": title}
        if title.strip().lower() != "else":
            case["when"] = texts.text(value) if value.strip() else "false"
        cases.append(case)
    cases.sort(key=lambda case: "when" not in case)  # an else matches whatever is left, so it comes last
    return "condition", {"cases": cases}


def _router(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    """Sim's routers ask a model; ours go by rule: a route is taken when the value is its id."""
    losses.append("routers here go by rule and ask no model; give its routes rules")
    routes: list[dict[str, Any]] = []
    given = parse_json(params.get("routes"))
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("id"), str):
            routes.append({"id": item["id"], "title": str(item.get("title") or item.get("value") or "")})
    value = params.get("context", params.get("prompt"))
    return "router", {"value": texts.value("" if value is None else value), "routes": routes}


def _approval(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    given = parse_json(params.get("inputFormat"))
    for item in given if isinstance(given, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str) or not item["name"]:
            continue
        schema: dict[str, Any] = {}
        kind = _field_type(item.get("type"))
        if kind != "any":
            schema["type"] = kind
        for theirs, ours in (("label", "title"), ("description", "description")):
            if isinstance(item.get(theirs), str) and item[theirs]:
                schema[ours] = item[theirs]
        if item.get("value") not in (None, ""):
            schema["default"] = typed_value(kind, item["value"])
        properties[item["name"]] = schema
        if item.get("required") is True:
            required.append(item["name"])
    fields: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        fields["required"] = required
    out: dict[str, Any] = {"title": name, "fields": fields, "actions": []}
    show = _fields_of(parse_json(params.get("builderData")), texts) or parse_json(params.get("data"))
    if show:
        out["show"] = texts.value(show) if isinstance(show, Mapping) else {"data": texts.value(show)}
    if params.get("notification"):
        losses.append("its notifications are left out; the link of the pause is in the run's events")
    return "approval", out


def _wait(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    unit = params.get("timeUnitLong") if params.get("async") else params.get("timeUnit")
    unit = unit or params.get("timeUnit") or params.get("timeUnitLong") or _UNIT_DEFAULT
    amount = _number(params.get("timeValue", 10))
    if isinstance(amount, int | float):
        return "wait", {"seconds": amount * _UNITS.get(str(unit), 1)}
    if str(unit) != _UNIT_DEFAULT:
        losses.append(f"the time is given by reference; it is read as seconds, not {unit}")
    return "wait", {"seconds": texts.value(amount)}


def _variables(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    assignments: list[dict[str, Any]] = []
    given = parse_json(params.get("variables"))
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("variableName"), str) and item["variableName"]:
            kind = str(item.get("type", ""))
            value = texts.value(typed_value(kind, item.get("value")))
            assignment = {"name": item["variableName"], "op": "set", "value": value}
            if isinstance(value, str) and kind in ("number", "boolean", "object", "array"):
                assignment["type"] = kind  # the text holds references: it is read when they are
            assignments.append(assignment)
    return "variables", {"assign": assignments}


def _function(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    code = params.get("code", "")
    if isinstance(code, list):  # older documents: one entry per cell
        code = "\n".join(str(cell.get("content", "")) for cell in code if isinstance(cell, Mapping))
    if params.get("language") not in (None, "", "javascript"):
        losses.append(f"its code is {params['language']}; only JavaScript runs here")
    return "function", {"code": texts.text(str(code))}


def _http(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    out: dict[str, Any] = {"url": texts.value(params.get("url", "")), "method": str(params.get("method") or "GET")}
    for theirs, ours in (("headers", "headers"), ("params", "query")):
        table = _table_of(params.get(theirs), texts)
        if table:
            out[ours] = table
    body = parse_json(params.get("body"))
    if body not in (None, ""):
        out["body"] = texts.value(body)
    timeout = _number(params.get("timeout"))
    if isinstance(timeout, int | float) and timeout > 0:
        out["timeout_s"] = timeout / 1000
    return "http", out


def _response(name: str, params: dict[str, Any], texts: Texts, losses: list[str]) -> tuple[str, dict[str, Any]]:
    out: dict[str, Any] = {}
    status = _number(params.get("status"))
    if status not in (None, ""):
        out["status"] = texts.value(status)
    headers = _table_of(params.get("headers"), texts)
    if headers:
        out["headers"] = headers
    built = _fields_of(parse_json(params.get("builderData")), texts)
    data = parse_json(params.get("data"))
    use_data = params.get("dataMode") == "json" or (not built and data not in (None, ""))
    body = texts.value(data) if use_data else built
    if body not in (None, ""):
        out["body"] = body
    return "response", out


def _test(condition: Any, texts: Texts) -> str:
    """An empty test holds for no iteration, in Sim as here."""
    text = condition if isinstance(condition, str) else ""
    return texts.text(text) if text.strip() else "false"


def _fields_of(given: Any, texts: Texts) -> dict[str, Any]:
    """Sim's form of an object: a list of {name, type, value}, objects nested as such lists."""
    out: dict[str, Any] = {}
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("name"), str) and item["name"]:
            kind, value = str(item.get("type", "")), item.get("value")
            nested = isinstance(value, list) and all(isinstance(v, Mapping) and "name" in v for v in value)
            if kind == "object" and nested and value:
                out[item["name"]] = _fields_of(value, texts)
            else:
                out[item["name"]] = texts.value(typed_value(kind, value))
    return out


def _table_of(given: Any, texts: Texts) -> dict[str, Any]:
    """Sim's tables: a list of rows {cells: {Key, Value}}, or an object."""
    given = parse_json(given)
    if isinstance(given, Mapping):
        return {str(key): texts.value(value) for key, value in given.items()}
    table: dict[str, Any] = {}
    for row in given if isinstance(given, list) else ():
        cells = row.get("cells") if isinstance(row, Mapping) else None
        if isinstance(cells, Mapping) and cells.get("Key"):
            table[texts.text(str(cells["Key"]))] = texts.value(cells.get("Value", ""))
    return table


def _field_type(given: Any) -> str:
    return given if given in ("string", "number", "boolean", "object", "array") else "any"


def _number(value: Any) -> Any:
    """The number in a text; everything else as it is."""
    if isinstance(value, str):
        number = parse_json(value.strip())
        return number if isinstance(number, int | float) and not isinstance(number, bool) else value
    return value


_TABLE: dict[str, Callable[[str, dict[str, Any], Texts, list[str]], tuple[str, dict[str, Any]]]] = {
    "start_trigger": _start,
    "condition": _condition,
    "router": _router,
    "router_v2": _router,
    "human_in_the_loop": _approval,
    "wait": _wait,
    "variables": _variables,
    "function": _function,
    "api": _http,
    "response": _response,
}

"""Params of Sim's block types -> ours: one function per type, a table at the end. Types without one keep their
params.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from compiler.imports.sim_models import MODEL_PARAMS, agent, evaluator, guardrails, router
from compiler.imports.sim_text import WEBHOOKS, Loss, Texts, parse_json, typed_value
from compiler.imports.sim_triggers import github, schedule, webhook

_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_UNIT_DEFAULT = "seconds"
# Sim's own switches, which mean nothing here.
_INTERNAL = frozenset(["triggerMode", "advancedMode"])
_NOTHING: tuple[Any, ...] = (None, "", [], {}, False)
_REPEATABLE = frozenset(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
_PAUSE_MAX_MS = 86_400_000
_TIMEOUT_MAX_S = 300  # of a request
SETTINGS_SHOWN_MAX = 10
Converted = tuple[str, dict[str, Any], list[Loss]]


def translate(kind: str, name: str, params: Mapping[str, Any], texts: Texts) -> Converted:
    """(our type, our params, what was lost) of a block that is no container."""
    settings = {key: value for key, value in params.items() if key not in _INTERNAL}
    convert = _TABLE.get(kind)
    if convert is None:
        return kind, texts.value(settings), []
    losses: list[Loss] = []
    ours, converted = convert(name, settings, texts, losses)
    unread = [
        key
        for key, value in settings.items()
        if key not in _READ.get(kind, settings) and value not in _NOTHING and not _is_empty_form(value)
    ]
    if unread:
        shown = ", ".join(sorted(unread)[:SETTINGS_SHOWN_MAX])
        losses.append(Loss(f"These settings are not imported: {shown}.", "Check whether the block needs them."))
    return ours, converted, losses


def is_known(kind: str) -> bool:
    """Return whether a block that is not a container is translated, not only copied."""
    return kind in _TABLE


def _is_empty_form(value: Any) -> bool:
    """A list of fields of which none has a name yet."""
    fields = parse_json(value)
    return isinstance(fields, list) and all(isinstance(field, Mapping) and field.get("name") == "" for field in fields)


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


def _start(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    fields: list[dict[str, Any]] = []
    items = parse_json(params.get("inputFormat"))
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str) or not item["name"]:
            continue
        field: dict[str, Any] = {"name": item["name"], "type": _input_type(item.get("type"))}
        if item.get("value") not in (None, "") and field["type"] != "file":
            field["default"] = typed_value(field["type"], item["value"])
        fields.append(field)
    return "start", {"fields": fields} if fields else {}


def _condition(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    items = parse_json(params.get("conditions"))
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            losses.append(Loss("A case that cannot be read is left out.", "Add the case."))
            continue
        title, value = str(item.get("title") or ""), str(item.get("value") or "")
        case = {"id": item["id"], "title": title}
        if title.strip().lower() != "else":
            case["when"] = texts.text(value) if value.strip() else "false"
        cases.append(case)
    cases.sort(key=lambda case: "when" not in case)  # an else matches whatever is left, so it comes last
    return "condition", {"cases": cases}


def _approval(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    items = parse_json(params.get("inputFormat"))
    for item in items if isinstance(items, list) else ():
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
        losses.append(Loss("Its notifications are not imported.", "Set Notify, or use the list of approvals."))
    return "approval", out


def _wait(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    unit = params.get("timeUnitLong") if params.get("async") else params.get("timeUnit")
    unit = unit or params.get("timeUnit") or params.get("timeUnitLong") or _UNIT_DEFAULT
    amount = _number(params.get("timeValue", 10))
    if isinstance(amount, int | float):
        return "wait", {"seconds": amount * _UNITS.get(str(unit), 1)}
    if str(unit) != _UNIT_DEFAULT:
        losses.append(Loss(f"Its time is a reference, which is read as seconds, not {unit}.", "Convert it to seconds."))
    return "wait", {"seconds": texts.value(amount)}


def _variables(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    assignments: list[dict[str, Any]] = []
    items = parse_json(params.get("variables"))
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("variableName"), str) and item["variableName"]:
            kind = str(item.get("type", ""))
            value = texts.value(typed_value(kind, item.get("value")))
            assignment = {"name": item["variableName"], "op": "set", "value": value}
            if isinstance(value, str) and kind in ("number", "boolean", "object", "array"):
                assignment["type"] = kind  # the text holds references: it is read when they are
            assignments.append(assignment)
    return "variables", {"assign": assignments}


_LANGUAGES = (None, "", "javascript")


def _function(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    code = params.get("code", "")
    if isinstance(code, list):  # older documents: one entry per cell
        code = "\n".join(str(cell.get("content", "")) for cell in code if isinstance(cell, Mapping))
    language = params.get("language")
    if language not in (*_LANGUAGES, "python"):
        losses.append(
            Loss(
                f"Its code is {str(language).capitalize()}, which does not run here. The code is kept in the notes.",
                "Rewrite it in JavaScript or Python.",
            )
        )
        return "function", {"code": ""}
    beside = {"language": "python"} if language == "python" else {}
    return "function", {"code": texts.text(str(code)), **beside}


def notes_of(kind: str, params: Mapping[str, Any]) -> str:
    """Return the settings that are kept for people to read because they have no other place."""
    lines: list[str] = []
    if kind == "function" and params.get("language") not in (*_LANGUAGES, "python"):
        code = params.get("code", "")
        cells = code if isinstance(code, list) else [{"content": code}]
        lines = [str(cell.get("content", "")) for cell in cells if isinstance(cell, Mapping)]
    return "\n".join(lines)


def policy_of(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Sim's `api` block repeats requests that failed, but repeats writes only when asked to."""
    if kind != "api":
        return {}
    retries = _number(params.get("retries") or 0)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        retries = 0
    repeats = str(params.get("method") or "GET").upper() in _REPEATABLE or params.get("retryNonIdempotent") is True
    policy: dict[str, Any] = {"max_attempts": min(100, retries + 1) if repeats else 1}
    for theirs, ours in (("retryDelayMs", "initial_ms"), ("retryMaxDelayMs", "max_ms")):
        pause = _number(params.get(theirs))
        if isinstance(pause, int | float) and not isinstance(pause, bool) and 0 <= pause <= _PAUSE_MAX_MS:
            policy[ours] = round(pause)
    return {"retry": policy}


def _note(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    return "note", {"text": str(params.get("content") or "")}


def _workflow(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """Sim names workflows by id; the name of the workflow here is not known."""
    target = str(params.get("workflowId") or "")
    losses.append(
        Loss(
            f'It runs the Sim workflow "{target}".' if target else "It runs no workflow.",
            "Import that workflow, too, and choose it in this block.",
        )
    )
    mapping = parse_json(params.get("inputMapping"))
    if mapping in _NOTHING:
        mapping = parse_json(params.get("input"))
    out: dict[str, Any] = {"workflow": target}
    if mapping not in _NOTHING:
        out["input"] = texts.value(mapping)
    return "run_workflow", out


def _http(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
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
        out["timeout_s"] = min(timeout / 1000, _TIMEOUT_MAX_S)
        if timeout / 1000 > _TIMEOUT_MAX_S:
            losses.append(Loss(f"Its timeout is reduced to {_TIMEOUT_MAX_S} s.", "Use a callback for longer requests."))
    return "http", out


def _response(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
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


def _fields_of(form: Any, texts: Texts) -> dict[str, Any]:
    """Sim's form of an object: a list of {name, type, value}, objects nested as such lists."""
    out: dict[str, Any] = {}
    for item in form if isinstance(form, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("name"), str) and item["name"]:
            kind, value = str(item.get("type", "")), item.get("value")
            nested = isinstance(value, list) and all(isinstance(v, Mapping) and "name" in v for v in value)
            if kind == "object" and nested and value:
                out[item["name"]] = _fields_of(value, texts)
            else:
                out[item["name"]] = texts.value(typed_value(kind, value))
    return out


def _table_of(table_or_object: Any, texts: Texts) -> dict[str, Any]:
    """Sim's tables: a list of rows {cells: {Key, Value}}, or an object."""
    table_or_object = parse_json(table_or_object)
    if isinstance(table_or_object, Mapping):
        return {str(key): texts.value(value) for key, value in table_or_object.items()}
    table: dict[str, Any] = {}
    for row in table_or_object if isinstance(table_or_object, list) else ():
        cells = row.get("cells") if isinstance(row, Mapping) else None
        if isinstance(cells, Mapping) and cells.get("Key"):
            table[texts.text(str(cells["Key"]))] = texts.value(cells.get("Value", ""))
    return table


def _field_type(kind: Any) -> str:
    return kind if kind in ("string", "number", "boolean", "object", "array") else "any"


def _input_type(kind: Any) -> str:
    """Return the type of a field of the input, which can be a file or a list of files."""
    return {"file": "file", "file[]": "array"}.get(str(kind)) or _field_type(kind)


def _number(value: Any) -> Any:
    """The number in a text; everything else as it is."""
    if isinstance(value, str):
        number = parse_json(value.strip())
        return number if isinstance(number, int | float) and not isinstance(number, bool) else value
    return value


_TABLE: dict[str, Callable[[str, dict[str, Any], Texts, list[Loss]], tuple[str, dict[str, Any]]]] = {
    "start_trigger": _start,
    "schedule": schedule,
    **dict.fromkeys(WEBHOOKS, webhook),
    "github_webhook": github,
    "note": _note,
    "workflow": _workflow,
    "workflow_input": _workflow,
    "condition": _condition,
    "agent": agent,
    "router": router,
    "router_v2": router,
    "evaluator": evaluator,
    "guardrails": guardrails,
    "human_in_the_loop": _approval,
    "wait": _wait,
    "variables": _variables,
    "function": _function,
    "api": _http,
    "response": _response,
}
# Params that are read, or mean nothing here; other params with a value are lost, which is reported.
_READ: dict[str, Collection[str]] = {
    "start_trigger": ("inputFormat",),
    "schedule": (
        *("scheduleType", "minutesInterval", "hourlyMinute", "dailyTime", "weeklyDay", "weeklyDayTime"),
        *("monthlyDay", "monthlyTime", "cronExpression", "timezone"),
    ),
    **dict.fromkeys(WEBHOOKS, ("requireAuth", "token", "secretHeaderName", "webhookUrlDisplay", "webhookProvider")),
    "github_webhook": (
        *("webhookSecret", "selectedTriggerId", "sslVerification", "contentType"),
        *("webhookUrlDisplay", "inputFormat", "triggerConfig", "triggerInstructions", "credential", "manualCredential"),
    ),
    "note": ("content", "format"),
    "workflow": ("workflowId", "inputMapping", "input"),
    "workflow_input": ("workflowId", "inputMapping", "input"),
    "condition": ("conditions",),
    "agent": (
        *("systemPrompt", "userPrompt", "context", "messages", "responseFormat", "tools"),
        *("memories", "memoryType", "conversationId", "slidingWindowSize", "slidingWindowTokens", *MODEL_PARAMS),
    ),
    "router": ("context", "prompt", "routes", "systemPrompt", *MODEL_PARAMS),
    "router_v2": ("context", "prompt", "routes", "systemPrompt", *MODEL_PARAMS),
    "evaluator": ("content", "metrics", *MODEL_PARAMS),
    "guardrails": ("input", "validationType", "regex", "piiEntityTypes", *MODEL_PARAMS),
    "human_in_the_loop": ("inputFormat", "builderData", "data", "dataMode", "notification"),
    "wait": ("timeValue", "timeUnit", "timeUnitLong", "async"),
    "variables": ("variables",),
    "function": ("code", "language"),
    "api": (
        *("url", "method", "headers", "params", "body", "timeout"),
        *("retries", "retryDelayMs", "retryMaxDelayMs", "retryNonIdempotent"),
    ),
    "response": ("status", "headers", "builderData", "data", "dataMode"),
}

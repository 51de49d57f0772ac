"""Blocks of Sim's types -> ours: one function per type, and one table. Types without one keep their params. Those that
ask a language model are in `sim_models`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from compiler.imports.sim_models import agent, evaluator, guardrails, router
from compiler.imports.sim_text import (
    NOTHING,
    WEBHOOKS,
    Loss,
    Settings,
    Texts,
    is_number,
    mapping,
    number_in,
    parse_json,
    typed_value,
)

_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_UNIT_DEFAULT: Final = "seconds"
_INTERNAL: Final = frozenset(["triggerMode", "advancedMode"])  # Sim's own switches, which mean nothing here
_REPEATABLE: Final = frozenset(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
_PAUSE_MAX_MS: Final = 86_400_000
_TIMEOUT_MAX_S: Final = 300  # of a request
SETTINGS_SHOWN_MAX: Final = 10
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_DAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_LANGUAGES: Final = (None, "", "javascript", "python")
_CHECK: Final = "Check whether the block needs them."


def translate(kind: str, name: str, params: Mapping[str, Any], texts: Texts) -> tuple[str, dict[str, Any], list[Loss]]:
    """(our type, our params, what was lost) of a block that is no container."""
    settings = Settings(name, {key: value for key, value in params.items() if key not in _INTERNAL}, texts)
    if kind not in _TABLE:
        return kind, texts.value(settings.params), []
    ours, convert, reads = _TABLE[kind]
    converted = convert(settings)
    unread = sorted(
        key
        for key, value in settings.params.items()
        if key not in reads.split() and value not in NOTHING and not _is_empty_form(value)
    )
    if unread:
        settings.lose(f"These settings are not imported: {', '.join(unread[:SETTINGS_SHOWN_MAX])}.", _CHECK)
    return ours, converted, settings.losses


def is_known(kind: str) -> bool:
    """Return whether a block that is not a container is translated, not only copied."""
    return kind in _TABLE


def _is_empty_form(value: Any) -> bool:
    """A list of fields of which none has a name yet."""
    fields = parse_json(value)
    return isinstance(fields, list) and all(isinstance(field, Mapping) and field.get("name") == "" for field in fields)


def loop_params(config: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """Sim bounds only counted loops; `count: 0` skips the body here. A `for` loop is bounded by its own count."""
    count = number_in(config.get("iterations", config.get("count", 5)))
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
        params = {"mode": "count", "count": texts.value(number_in(config.get("count", 1)))}
    batch = number_in(config.get("batchSize"))
    if isinstance(batch, int) and batch > 0:
        params["concurrency"] = batch
    return {**params, "results": "all"}


def _test(condition: Any, texts: Texts) -> str:
    """An empty test holds for no iteration, in Sim as here."""
    text = condition if isinstance(condition, str) else ""
    return texts.text(text) if text.strip() else "false"


def _start(block: Settings) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for item in block.named("inputFormat"):
        kind = {"file": "file", "file[]": "array"}.get(str(item.get("type"))) or _field_type(item.get("type"))
        field: dict[str, Any] = {"name": item["name"], "type": kind}
        if item.get("value") not in (None, "") and kind != "file":
            field["default"] = typed_value(kind, item["value"])
        fields.append(field)
    return {"fields": fields} if fields else {}


def _schedule(block: Settings) -> dict[str, Any]:
    """The times of Sim's form as a cron expression; empty, which is an error, when they cannot be read."""
    expression = _cron(block)
    if expression is None:
        block.lose("Its times cannot be read.", "Set the cron expression of the block.")
    zone = block.get("timezone")
    return {"cron": expression or ""} | ({"tz": zone} if isinstance(zone, str) and zone else {})


def _cron(block: Settings) -> str | None:
    custom = block.get("cronExpression")
    match block.get("scheduleType", "daily"):
        case "minutes" if (step := _whole(block.get("minutesInterval", 15), 1, 59)) is not None:
            return f"*/{step} * * * *"
        case "hourly" if (minute := _whole(block.get("hourlyMinute", 0), 0, 59)) is not None:
            return f"{minute} * * * *"
        case "daily" if (clock := _clock(block.get("dailyTime"))) is not None:
            return f"{clock} * * *"
        case "weekly" if (clock := _clock(block.get("weeklyDayTime"))) is not None:
            day = str(block.get("weeklyDay") or "MON")[:3].upper()
            return f"{clock} * * {day}" if day in _DAYS else None
        case "monthly" if (clock := _clock(block.get("monthlyTime"))) is not None:
            date = _whole(block.get("monthlyDay", 1), 1, 31)
            return f"{clock} {date} * *" if date is not None else None
        case "custom" if isinstance(custom, str) and custom.strip():
            return custom.strip()
        case _:
            return None


def _clock(text: Any) -> str | None:
    """`09:30` -> `30 9`, the first two fields of a cron expression."""
    found = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    return f"{int(found[2])} {int(found[1])}" if found else None


def _whole(value: Any, low: int, high: int) -> int | None:
    text = str(value).strip()
    return int(text) if text.isdecimal() and len(text) < 4 and low <= int(text) <= high else None


def _webhook(block: Settings) -> dict[str, Any]:
    """Convert a webhook. Its URL is another one, and secrets are not imported: they would be in the document."""
    block.lose("It gets a new URL.", "Publish the workflow and give the URL of the block to the sender.")
    if block.get("requireAuth") not in (True, "true"):
        return {"auth": "none"}
    header = block.get("secretHeaderName")
    sent = f" instead of the header {header}" if isinstance(header, str) and header else ""
    block.lose("Its token is not imported.", f"Send the secret of the new webhook as a bearer token{sent}.")
    return {"auth": "token"}


def _github(block: Settings) -> dict[str, Any]:
    """Convert a GitHub trigger. GitHub signs its requests; their events are chosen there."""
    event = block.text("selectedTriggerId").removeprefix("github_").replace("_", " ")
    only = f' for "{event}"' if event and event != "webhook" else ""
    hint = f"Publish the workflow, and add its URL and its secret as a webhook of the repository{only}."
    block.lose("It starts a run for each event that GitHub sends to its new URL.", hint)
    return {"auth": "github"}


def _feed(block: Settings) -> dict[str, Any]:
    return {"url": block.texts.value(block.get("feedUrl"))} if block.text("feedUrl") else {}


def _mailbox(block: Settings) -> dict[str, Any]:
    """Convert a trigger of a mailbox. Its search is a loss: every mail starts a run."""
    hint = 'Create a connection with the name "imap", or choose another one in the block.'
    block.lose("Its account is not imported.", hint)
    folder = block.get("mailbox")
    folder = folder[0] if isinstance(folder, list) and folder else folder
    host = block.text("host")
    server = {"server": f"{host}:{block.text('port') or '993'}"} if host else {}
    return {**server, "connection": "imap"} | ({"folder": folder} if isinstance(folder, str) and folder else {})


def _condition(block: Settings) -> dict[str, Any]:
    cases: list[dict[str, Any]] = []
    for item in block.items("conditions"):
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            block.lose("A case that cannot be read is left out.", "Add the case.")
            continue
        title, value = str(item.get("title") or ""), str(item.get("value") or "")
        case = {"id": item["id"], "title": title}
        if title.strip().lower() != "else":
            case["when"] = _test(value, block.texts)
        cases.append(case)
    cases.sort(key=lambda case: "when" not in case)  # an else matches whatever is left, so it comes last
    return {"cases": cases}


def _approval(block: Settings) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for item in block.named("inputFormat"):
        kind = _field_type(item.get("type"))
        schema: dict[str, Any] = {"type": kind} if kind != "any" else {}
        for theirs, ours in (("label", "title"), ("description", "description")):
            if isinstance(item.get(theirs), str) and item[theirs]:
                schema[ours] = item[theirs]
        if item.get("value") not in (None, ""):
            schema["default"] = typed_value(kind, item["value"])
        properties[item["name"]] = schema
        if item.get("required") is True:
            required.append(item["name"])
    fields = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    out: dict[str, Any] = {"title": block.name, "fields": fields, "actions": []}
    show = _fields_of(block.json("builderData"), block.texts) or block.json("data")
    if show:
        value = block.texts.value(show)
        out["show"] = value if isinstance(show, Mapping) else {"data": value}
    if block.get("notification"):
        block.lose("Its notifications are not imported.", "Set Notify, or use the list of approvals.")
    return out


def _wait(block: Settings) -> dict[str, Any]:
    unit = block.get("timeUnitLong" if block.get("async") else "timeUnit")
    unit = unit or block.get("timeUnit") or block.get("timeUnitLong") or _UNIT_DEFAULT
    amount = block.number("timeValue", 10)
    if isinstance(amount, int | float):
        return {"seconds": amount * _UNITS.get(str(unit), 1)}
    if str(unit) != _UNIT_DEFAULT:
        block.lose(f"Its time is a reference, which is read as seconds, not {unit}.", "Convert it to seconds.")
    return {"seconds": block.texts.value(amount)}


def _variables(block: Settings) -> dict[str, Any]:
    assignments: list[dict[str, Any]] = []
    for item in block.named("variables", "variableName"):
        kind = str(item.get("type", ""))
        value = block.texts.value(typed_value(kind, item.get("value")))
        assignment = {"name": item["variableName"], "op": "set", "value": value}
        if isinstance(value, str) and kind in ("number", "boolean", "object", "array"):
            assignment["type"] = kind  # the text holds references: it is read when they are
        assignments.append(assignment)
    return {"assign": assignments}


def _function(block: Settings) -> dict[str, Any]:
    language = block.get("language")
    if language not in _LANGUAGES:
        message = f"Its code is {str(language).capitalize()}, which does not run here. The code is kept in the notes."
        block.lose(message, "Rewrite it in JavaScript or Python.")
        return {"code": ""}
    code = {"code": block.texts.text(_code_of(block.params))}
    return code | ({"language": "python"} if language == "python" else {})


def _code_of(params: Mapping[str, Any]) -> str:
    code = params.get("code", "")
    if isinstance(code, list):  # older documents: one entry per cell
        return "\n".join(str(cell.get("content", "")) for cell in code if isinstance(cell, Mapping))
    return str(code)


def notes_of(kind: str, params: Mapping[str, Any]) -> str:
    """Return the settings that are kept for people to read because they have no other place."""
    return _code_of(params) if kind == "function" and params.get("language") not in _LANGUAGES else ""


def policy_of(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Sim's `api` block repeats requests that failed, but repeats writes only when asked to."""
    if kind != "api":
        return {}
    retries = number_in(params.get("retries") or 0)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        retries = 0
    repeats = str(params.get("method") or "GET").upper() in _REPEATABLE or params.get("retryNonIdempotent") is True
    policy: dict[str, Any] = {"max_attempts": min(100, retries + 1) if repeats else 1}
    for theirs, ours in (("retryDelayMs", "initial_ms"), ("retryMaxDelayMs", "max_ms")):
        pause = number_in(params.get(theirs))
        if is_number(pause) and 0 <= pause <= _PAUSE_MAX_MS:
            policy[ours] = round(pause)
    return {"retry": policy}


def _workflow(block: Settings) -> dict[str, Any]:
    """Sim names workflows by id; the name of the workflow here is not known."""
    target = block.text("workflowId")
    message = f'It runs the Sim workflow "{target}".' if target else "It runs no workflow."
    block.lose(message, "Import that workflow, too, and choose it in this block.")
    input = block.json("inputMapping")
    input = block.json("input") if input in NOTHING else input
    return {"workflow": target} | ({} if input in NOTHING else {"input": block.texts.value(input)})


def _http(block: Settings) -> dict[str, Any]:
    out: dict[str, Any] = {"url": block.texts.value(block.get("url", "")), "method": block.text("method") or "GET"}
    for theirs, ours in (("headers", "headers"), ("params", "query")):
        if table := _table_of(block.json(theirs), block.texts):
            out[ours] = table
    body = block.json("body")
    if body not in (None, ""):
        out["body"] = block.texts.value(body)
    timeout = block.number("timeout")
    if isinstance(timeout, int | float) and timeout > 0:
        out["timeout_s"] = min(timeout / 1000, _TIMEOUT_MAX_S)
        if timeout / 1000 > _TIMEOUT_MAX_S:
            block.lose(f"Its timeout is reduced to {_TIMEOUT_MAX_S} s.", "Use a callback for longer requests.")
    return out


def _response(block: Settings) -> dict[str, Any]:
    out: dict[str, Any] = {}
    status = block.number("status")
    if status not in (None, ""):
        out["status"] = block.texts.value(status)
    if headers := _table_of(block.json("headers"), block.texts):
        out["headers"] = headers
    built = _fields_of(block.json("builderData"), block.texts)
    data = block.json("data")
    use_data = block.get("dataMode") == "json" or (not built and data not in (None, ""))
    body = block.texts.value(data) if use_data else built
    return out if body in (None, "") else {**out, "body": body}


def _fields_of(form: Any, texts: Texts) -> dict[str, Any]:
    """Sim's form of an object: a list of {name, type, value}, objects nested as such lists."""
    out: dict[str, Any] = {}
    for item in form if isinstance(form, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("name"), str) and item["name"]:
            kind, value = str(item.get("type", "")), item.get("value")
            nested = isinstance(value, list) and all(isinstance(v, Mapping) and "name" in v for v in value)
            is_object = kind == "object" and nested and value
            out[item["name"]] = _fields_of(value, texts) if is_object else texts.value(typed_value(kind, value))
    return out


def _table_of(table: Any, texts: Texts) -> dict[str, Any]:
    """Sim's tables: a list of rows {cells: {Key, Value}}, or an object."""
    if isinstance(table, Mapping):
        return {str(key): texts.value(value) for key, value in table.items()}
    rows = [mapping(mapping(row).get("cells")) for row in (table if isinstance(table, list) else ())]
    return {texts.text(str(row["Key"])): texts.value(row.get("Value", "")) for row in rows if row.get("Key")}


def _field_type(kind: Any) -> str:
    return kind if kind in ("string", "number", "boolean", "object", "array") else "any"


# By Sim's type: our type, its params, and Sim's settings that are read, or mean nothing here. Others with a value are
# lost, which is reported.
_Row = tuple[str, Callable[[Settings], dict[str, Any]], str]
_MODEL: Final = "model apiKey temperature maxTokens"
_WEBHOOK: Final = ("webhook", _webhook, "requireAuth token secretHeaderName webhookUrlDisplay webhookProvider")
_CHILD: Final = ("run_workflow", _workflow, "workflowId inputMapping input")
_ROUTER: Final = ("model_router", router, f"context prompt routes systemPrompt {_MODEL}")
_TIMES: Final = (
    "scheduleType minutesInterval hourlyMinute dailyTime weeklyDay weeklyDayTime monthlyDay monthlyTime cronExpression "
    "timezone"
)
_TABLE: Final[dict[str, _Row]] = {
    "start_trigger": ("start", _start, "inputFormat"),
    "schedule": ("schedule", _schedule, _TIMES),
    **dict.fromkeys(WEBHOOKS, _WEBHOOK),
    "github_webhook": (
        "webhook",
        _github,
        "webhookSecret selectedTriggerId sslVerification contentType webhookUrlDisplay inputFormat triggerConfig "
        "triggerInstructions credential manualCredential",
    ),
    "rss_poller": ("event.feed", _feed, "feedUrl triggerInstructions selectedTriggerId triggerSave"),
    "imap_poller": (
        "event.mail",
        _mailbox,
        "host port secure username password mailbox triggerInstructions selectedTriggerId triggerSave",
    ),
    "note": ("note", lambda block: {"text": block.text("content")}, "content format"),
    "workflow": _CHILD,
    "workflow_input": _CHILD,
    "condition": ("condition", _condition, "conditions"),
    "agent": (
        "agent",
        agent,
        "systemPrompt userPrompt context messages responseFormat tools memories memoryType conversationId "
        f"slidingWindowSize slidingWindowTokens {_MODEL}",
    ),
    "router": _ROUTER,
    "router_v2": _ROUTER,
    "evaluator": ("evaluator", evaluator, f"content metrics {_MODEL}"),
    "guardrails": ("guardrail", guardrails, f"input validationType regex piiEntityTypes {_MODEL}"),
    "human_in_the_loop": ("approval", _approval, "inputFormat builderData data dataMode notification"),
    "wait": ("wait", _wait, "timeValue timeUnit timeUnitLong async"),
    "variables": ("variables", _variables, "variables"),
    "function": ("function", _function, "code language"),
    "api": (
        "http",
        _http,
        "url method headers params body timeout retries retryDelayMs retryMaxDelayMs retryNonIdempotent",
    ),
    "response": ("response", _response, "status headers builderData data dataMode"),
}

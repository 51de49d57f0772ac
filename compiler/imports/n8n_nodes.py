"""The nodes of n8n that are no services -> blocks: one function per type, and one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from compiler.imports.n8n_branches import filter_, if_, switch
from compiler.imports.n8n_files import convert, extract, html, markdown, move, sftp
from compiler.imports.n8n_items import aggregate, code, item_lists, limit, merge, sort, split_out, summarize, unique
from compiler.imports.n8n_step import Made, Node, Step, Style
from compiler.imports.n8n_text import listed, quoted
from compiler.imports.n8n_triggers import (
    called,
    chat_trigger,
    failed,
    form_schema,
    form_trigger,
    manual,
    schedule,
    webhook,
)
from compiler.imports.sim_text import mapping, number_in, parse_json

_HASHES: Final = {"SHA1": "SHA-1", "SHA256": "SHA-256", "SHA384": "SHA-384", "SHA512": "SHA-512"}
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}


def set_(step: Step) -> Made:
    params, version = step.node.params, step.node.version
    if step.text("mode") == "raw":
        raw = step.get("jsonOutput", otherwise="{}")
        if isinstance(raw, str) and not raw.startswith("="):
            return Made("set", {"value": parse_json(raw)})
        code = f"const made = {step.texts.script(raw)};\nreturn typeof made === 'string' ? JSON.parse(made) : made;"
        return Made("function", {"code": code}, ".result")
    if version < 3:
        pairs = [(one.get("name"), one.get("value"), kind) for kind in mapping(params.get("values"))
                 for one in listed(params, "values", kind)]  # fmt: skip
        rest = params.get("keepOnlySet") is not True
    else:
        found = listed(params, "assignments", "assignments") or listed(params, "fields", "values")
        pairs = [(one.get("name"), _typed(one), str(one.get("type", "")).removesuffix("Value")) for one in found]
        rest = params.get("includeOtherFields") is True or (version < 3.3 and params.get("include", "all") != "none")
    chosen = [name.strip() for name in step.text("includeFields").split(",") if name.strip()]
    values: dict[str, Any] = {}
    for name, value, kind in pairs:
        at = values
        *outer, last = str(name or "value").removeprefix("=").split(".")
        for key in outer:
            inner = at[key] if isinstance(at.get(key), dict) else {}
            at[key] = inner
            at = inner
        at[last] = value if kind == "string" or str(value).startswith("=") else parse_json(value)
    if not rest or step.item is None:
        return Made("set", {"value": step.texts.value(values)})
    before = step.item.js()
    if chosen and params.get("include") == "selected":
        before = "{" + ", ".join(f"{quoted(name)}: {step.item.js((name,))}" for name in chosen) + "}"
    code = f"return {{ ...{before}, ...{step.texts.script(values)} }};"
    return Made("function", {"code": code}, ".result")


def _typed(one: Mapping[str, Any]) -> Any:
    kind = str(one.get("type") or "stringValue")
    return one["value"] if "value" in one else one.get(kind, one.get("stringValue", ""))


def same_item(step: Step) -> Made:
    return Made("set", {"value": step.item.value() if step.item else {}})


def date_time(step: Step) -> Made:
    if step.node.version < 2 and step.text("action") != "calculate":
        into, operation = step.text("dataPropertyName") or "data", "formatDate"
        date, form = step.js("value"), step.js("toFormat", otherwise="yyyy-MM-dd")
    else:
        operation = step.text("operation") or ("getCurrentDate" if step.node.version >= 2 else "addToDate")
        into = step.text("outputFieldName") or step.text("dataPropertyName") or {
            "getCurrentDate": "currentDate", "formatDate": "formattedDate", "extractDate": "datePart",
            "getTimeBetweenDates": "timeDifference", "roundDate": "roundedDate"}.get(operation, "newDate")  # fmt: skip
        date = step.js("date", otherwise=step.get("magnitude", otherwise=step.get("value", otherwise="")))
        form = step.js("customFormat", otherwise=step.get("format", otherwise="MM/dd/yyyy"))
    at, unit = f"new DateTime({date})", step.js("timeUnit", otherwise="days")
    value = {
        "getCurrentDate": "$now" if step.get("includeTime", otherwise=True) else "$today",
        "formatDate": f"{at}.toFormat({form.replace('YYYY', 'yyyy').replace('DD', 'dd')})",
        "addToDate": f"{at}.plus(Number({step.js('duration', otherwise=0)}), {unit})",
        "add": f"{at}.plus(Number({step.js('duration', otherwise=0)}), {unit})",
        "subtractFromDate": f"{at}.minus(Number({step.js('duration', otherwise=0)}), {unit})",
        "subtract": f"{at}.minus(Number({step.js('duration', otherwise=0)}), {unit})",
        "getTimeBetweenDates": f"new DateTime({step.js('endDate')}).diff({step.js('startDate')}, "
        f"{step.js('units', otherwise=['days'])}).toObject()",
        "extractDate": f"{at}[{step.js('part', otherwise='month')}]",
        "roundDate": f"{at}.startOf({step.js('toNearest', otherwise='month')})",
    }.get(operation, "$now")
    before = f"...{step.item.js()}, " if step.item is not None else ""
    return Made("function", {"code": f"return {{ {before}{quoted(into)}: {value} }};"}, ".result")


def wait(step: Step) -> Made:
    resume = step.text("resume") or "timeInterval"
    if resume in ("webhook", "form"):
        step.lose(f"It waits for a {resume}.", "Give its link to the other system: callback has `send` for that.")
        fields = ((("body",), "body"), (("headers",), "headers"))
        return Made("callback", {"title": step.node.name}, fields=fields) if resume == "webhook" else Made(
            "form", {"title": step.text("formTitle") or step.node.name, "fields": {"type": "object", "properties": {}}}
        )  # fmt: skip
    if resume == "specificTime":
        return Made("wait", {"until": step.value("dateTime")}, None)
    size = _UNITS[
        step.text("unit") if step.text("unit") in _UNITS else "hours" if step.node.version < 1.1 else "seconds"
    ]
    amount = number_in(step.get("amount", otherwise=1 if step.node.version < 1.1 else 5))
    if isinstance(amount, int | float):
        return Made("wait", {"seconds": amount * size}, None)
    return Made(
        "wait", {"seconds": step.texts.value(f"={{{{ {step.texts.script(amount)} * {size} }}}}", "seconds")}, None
    )


def respond(step: Step) -> Made:
    kind, status = step.text("respondWith") or "firstIncomingItem", step.get("options", "responseCode")
    params: dict[str, Any] = {"status": step.texts.value(status)} if status is not None else {}
    headers = {str(one.get("name")): step.texts.value(one.get("value")) for one in
               listed(step.get("options", "responseHeaders"), "entries")}  # fmt: skip
    if kind == "redirect":
        params |= {"status": params.get("status", 302)}
        headers |= {"location": step.value("redirectURL", otherwise="")}
    elif kind == "allIncomingItems":
        params["body"] = (
            step.items() if re.fullmatch(r"<[^<>]+>", step.items()) else step.texts.value(f"={{{{ {step.items()} }}}}")
        )
    elif kind == "firstIncomingItem":
        params["body"] = step.item.value() if step.item else {}
    elif kind in ("text", "json"):
        body = step.get("responseBody", otherwise="")
        if (
            kind == "json"
            and isinstance(body, str)
            and body.startswith("=")
            and not re.fullmatch(r"=\s*\{\{[\s\S]*\}\}\s*", body)
        ):
            js = step.texts.script(body)
            params["body"] = step.texts.value(f"={{{{ JSON.parse({js}) }}}}", "body")
        else:
            params["body"] = (
                parse_json(body)
                if kind == "json" and not body.startswith("=")
                else step.texts.value(body.strip(), "body")
            )
        if kind == "text":
            headers = {"content-type": "text/plain", **headers}
    elif kind != "noData":
        step.lose(f'Its response "{kind}" is not imported.', "Set the body of the response.")
    return Made("response", {**params, **({"headers": headers} if headers else {})}, None, ends=True)


def stop(step: Step) -> Made:
    message = step.js("errorMessage", otherwise=step.get("errorObject", otherwise="Stopped"))
    return Made("function", {"code": f"throw new Error({message});"}, ".result")


def child(step: Step) -> Made:
    target = step.get("workflowId")
    name = target.get("cachedResultName") or target.get("value") if isinstance(target, Mapping) else target
    itself = "$workflow.id" in str(name)
    name = step.texts.scope.title() if itself else str(name or "")
    if step.text("source") in ("parameter", "localFile", "url"):
        definition = parse_json(step.get("workflowJson", otherwise="{}"))
        step.lose("It has its workflow in itself.", "Import that workflow, too, and choose it in the block.")
        name = str(mapping(definition).get("name") or "sub-workflow")
    elif not itself:
        step.lose(f'It runs the n8n workflow "{name}".', "Import that workflow, too, and choose it in this block.")
    given = step.get("workflowInputs", "value")
    input = step.texts.value(given) if isinstance(given, Mapping) and given else step.item.value() if step.item else {}
    return Made("run_workflow", {"workflow": name.split(" — ")[-1], "input": input})


def rename(step: Step) -> Made:
    moves = [(str(k.get("currentKey")), str(k.get("newKey"))) for k in listed(step.get("keys"), "key")]
    item = step.item.js() if step.item else "{}"
    js = "".join(
        f"if ({quoted(a)} in made) {{ made[{quoted(b)}] = made[{quoted(a)}]; delete made[{quoted(a)}]; }}\n"
        for a, b in moves
    )
    return Made("function", {"code": f"const made = {{ ...{item} }};\n{js}return made;"}, ".result")


def crypto(step: Step) -> Made | None:
    """Random values, and those hashes that the sandbox has."""
    into, kind = step.text("dataPropertyName") or "data", step.text("type") or "MD5"
    before = f"...{step.item.js()}, " if step.item is not None else ""
    if step.text("action") == "generate":
        made = "crypto.randomUUID()"
    elif step.text("action") in ("", "hash") and kind in _HASHES and step.text("encoding") in ("", "hex"):
        made = f"await hashed({quoted(_HASHES[kind])}, {step.js('value', otherwise='')})"
    else:
        return None
    return Made("function", {"code": f"return {{ {before}{quoted(into)}: {made} }};"}, ".result")


def form(step: Step) -> Made:
    """A page of a form asks the person who works on the run; the last page is only shown in n8n."""
    if step.text("operation") == "completion":
        step.lose("The page at the end is not shown.", "Set the text after the form in its trigger.")
        return Made(
            "set", {"value": {"title": step.value("completionTitle"), "text": step.value("completionMessage")}}, None
        )
    titles = {
        "title": step.value("options", "formTitle", otherwise=step.node.name),
        "text": step.value("options", "formDescription"),
    }
    return Made("form", {**{key: text for key, text in titles.items() if text}, "fields": form_schema(step)}, ".fields")


Make = Callable[[Step], Made | None]
NODES: Final[dict[str, tuple[Style, Make]]] = {
    "manualTrigger": ("trigger", manual), "start": ("trigger", manual), "executeWorkflowTrigger": ("trigger", called),
    "errorTrigger": ("trigger", failed), "webhook": ("trigger", webhook), "formTrigger": ("trigger", form_trigger),
    "chatTrigger": ("trigger", chat_trigger), "manualChatTrigger": ("trigger", chat_trigger),
    "scheduleTrigger": ("trigger", schedule), "cron": ("trigger", schedule), "interval": ("trigger", schedule),
    "if": ("each", if_), "filter": ("each", filter_), "switch": ("each", switch), "set": ("each", set_),
    "noOp": ("each", same_item), "executionData": ("each", same_item), "splitOut": ("all", split_out),
    "aggregate": ("all", aggregate), "limit": ("all", limit), "sort": ("all", sort), "summarize": ("all", summarize),
    "removeDuplicates": ("all", unique), "itemLists": ("all", item_lists), "merge": ("all", merge),
    "code": ("all", code), "function": ("all", code), "functionItem": ("each", code), "dateTime": ("each", date_time),
    "wait": ("each", wait), "respondToWebhook": ("each", respond), "stopAndError": ("each", stop),
    "executeWorkflow": ("each", child), "renameKeys": ("each", rename), "html": ("each", html),
    "htmlExtract": ("each", html), "markdown": ("each", markdown), "extractFromFile": ("each", extract),
    "spreadsheetFile": ("each", extract), "moveBinaryData": ("each", move), "convertToFile": ("each", convert),
    "crypto": ("each", crypto), "form": ("each", form), "ftp": ("each", sftp),
}  # fmt: skip


def style_of(node: Node, made: Style) -> Style:
    if node.kind == "code" and node.params.get("mode") == "runOnceForEachItem":
        return "each"
    if node.kind == "convertToFile" and node.params.get("operation", "csv") in ("csv", "xls", "xlsx", "ods", "toJson"):
        return "all" if node.params.get("mode") != "each" else "each"
    if node.kind == "spreadsheetFile" and node.params.get("operation") == "toFile":
        return "all"
    if node.kind == "respondToWebhook" and node.params.get("respondWith") == "allIncomingItems":
        return "all"
    return made


def ways_of(node: Node, made: Made) -> list[str]:
    """The exits of a block by output; n8n has one more for errors."""
    ways = list(made.handles)
    return [*ways, "error"] if node.raw.get("onError") == "continueErrorOutput" else ways


def policy_of(node: Node) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    if node.raw.get("retryOnFail") is True:
        tries, pause = number_in(node.raw.get("maxTries", 3)), number_in(node.raw.get("waitBetweenTries", 1000))
        policy["retry"] = {
            "max_attempts": min(100, max(1, int(tries))) if isinstance(tries, int | float) else 3,
            "backoff": "fixed",
            "initial_ms": int(pause) if isinstance(pause, int | float) else 1000,
        }
    if node.raw.get("continueOnFail") is True or node.raw.get("onError") == "continueRegularOutput":
        policy["on_error"] = "continue"
    return policy

"""The triggers of n8n -> ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from compiler.imports.n8n_services import connection_of, services
from compiler.imports.n8n_step import Made, Step, located
from compiler.imports.n8n_text import listed
from compiler.imports.sim_text import number_in

_MAIL: Final = ((("textPlain",), "text"), (("textHtml",), "html"))
_FEED: Final = ((("pubDate",), "published"), (("isoDate",), "published"), (("contentSnippet",), "summary"))


def manual(step: Step) -> Made:
    return Made("start", {})


def called(step: Step) -> Made:
    kinds = ("string", "number", "boolean", "array", "object")
    values = listed(step.get("workflowInputs", "values")) or listed(step.get("workflowInputs"), "values")
    fields = [
        {"name": one["name"], "type": one["type"] if one.get("type") in kinds else "any"}
        for one in values
        if isinstance(one.get("name"), str) and one["name"]
    ]
    return Made("start", {"fields": fields} if fields else {})


def failed(step: Step) -> Made:
    hint = "Publish it, and name it as error_workflow in the settings of other workflows, or as WEFT_ERROR_WORKFLOW."
    step.lose("It runs as an error workflow.", hint)
    fields = (
        (("execution", "error", "message"), "failure.message"),
        (("execution", "id"), "run"),
        (("execution", "url"), "url"),
        (("execution", "lastNodeExecuted"), "node"),
        (("workflow", "name"), "workflow"),
        (("workflow", "id"), "workflow"),
    )
    return Made("start", {}, fields=fields)


def webhook(step: Step) -> Made:
    step.lose("It gets a new URL.", "Publish the workflow and give the URL of the block to the sender.")
    auth = "none"
    if step.text("authentication") not in ("", "none"):
        auth = "token"
        step.lose("Its credential is not imported.", "Send the secret of the new webhook as a bearer token.")
    now = step.text("responseMode") in ("", "onReceived")
    return Made("webhook", {"auth": auth, "respond": "immediate" if now else "run"})


def form_schema(step: Step) -> dict[str, Any]:
    """Return the JSON Schema of the fields of a form."""
    fields: dict[str, Any] = {}
    required: list[str] = []
    for one in listed(step.get("formFields"), "values"):
        name = str(one.get("fieldName") or one.get("fieldLabel") or "field")
        schema: dict[str, Any] = {"type": {"number": "number"}.get(str(one.get("fieldType")), "string")}
        if options := [str(o["option"]) for o in listed(one.get("fieldOptions"), "values") if o.get("option")]:
            schema |= {"enum": options}
        if one.get("fieldType") == "file":
            schema = {"format": "file", "title": name}
        fields[name] = schema
        required += [name] if one.get("requiredField") is True else []
    return {"type": "object", "properties": fields} | ({"required": required} if required else {})


def form_trigger(step: Step) -> Made:
    schema = form_schema(step)
    of_file = [name for name, one in schema["properties"].items() if one.get("format") == "file"]
    places = {re.sub(r"\W", "_", name): f".{name}" if name.isidentifier() else f'["{name}"]' for name in of_file}
    texts = {"title": step.text("formTitle"), "text": step.text("formDescription")}
    made = {key: text.removeprefix("=") for key, text in texts.items() if text}
    return Made("form_trigger", {**made, "fields": schema}, files=places)


def chat_trigger(step: Step) -> Made:
    fields = ((("chatInput",), "message"), (("sessionId",), "conversation"))
    return Made("chat_trigger", {}, fields=fields)


def schedule(step: Step) -> Made:
    rules = listed(step.get("rule"), "interval") or listed(step.get("triggerTimes"), "item") or [{}]
    made = [_cron(rule) for rule in rules]
    if any(one is None for one in made):
        step.lose("Its times cannot be read.", "Set the cron expression of the block.")
    if len(made) > 1:
        step.lose("It has several times; only the first one is imported.", "Add a schedule for each other one.")
    return Made("schedule", {"cron": made[0] or "0 0 * * *"})


def _cron(rule: Mapping[str, Any]) -> str | None:
    """Return five fields. The mode of the old Cron node has the words every…; its rules have other names."""
    unit = str(rule.get("field") or {"everyX": rule.get("unit")}.get(str(rule.get("mode")), rule.get("mode")) or "days")
    unit = {"everyMinute": "minutes", "everyHour": "hours", "everyDay": "days", "everyWeek": "weeks"}.get(unit, unit)
    unit = {"everyMonth": "months"}.get(unit, unit)

    def of(*keys: str) -> int:
        return next((int(n) for key in keys if isinstance(n := number_in(rule.get(key)), int | float)), 0)

    minute, hour, each = of("triggerAtMinute", "minute"), of("triggerAtHour", "hour"), of("value")
    custom = rule.get("expression", rule.get("cronExpression"))
    match unit:
        case "cronExpression" | "custom" if isinstance(custom, str):
            parts = custom.removeprefix("=").split()
            return " ".join(parts[-5:]) if len(parts) in (5, 6) else None
        case "seconds":
            return "* * * * *"
        case "minutes":
            return f"*/{of('minutesInterval') or each or (5 if 'field' in rule else 1)} * * * *"
        case "hours":
            every = of("hoursInterval") or each or 1
            return f"{minute} {'*' if every == 1 else f'*/{every}'} * * *"
        case "weeks":
            days = rule.get("triggerAtDay", rule.get("weekday", 0))
            listed_days = ",".join(str(int(day) % 7) for day in (days if isinstance(days, list) else [days]) or [0])
            return f"{minute} {hour} * * {listed_days}"
        case "months":
            return f"{minute} {hour} {of('triggerAtDayOfMonth', 'dayOfMonth') or 1} * *"
        case "days":
            return f"{minute} {hour} {'*' if of('daysInterval') < 2 else '*/' + str(of('daysInterval'))} * *"
    return None


def _polled(step: Step, line: str) -> Made:
    """Convert a trigger that asks its service now and then. `line`: our type, and its params by settings of n8n."""
    kind, *words = line.split()
    params: dict[str, Any] = {}
    for word in words:
        ours, _, place = word.partition("=")
        found = step.get(*place.split(".")) if ours != "event" else place
        found = found.get("cachedResultName") if ours == "range" and isinstance(found, Mapping) else located(found)
        if found not in (None, ""):
            params[ours] = step.texts.value(found, ours)
    if kind == "event.telegram":
        params["credential"] = "${TELEGRAM_CREDENTIAL}"
        step.lose("Its credential is not imported.", "Store the secret TELEGRAM_CREDENTIAL.")
    elif kind != "event.feed":
        params["connection"] = name = connection_of(step.node, kind.removeprefix("event."))
        hint = f'Create a connection with the name "{name}", or choose another one in the block.'
        step.lose("Its account is not imported.", hint)
    if kind == "event.gmail":
        event = step.first(kind, params, "event")
        read = {"operation": "read", "message": f"<{event}.event.id>", "connection": params["connection"]}
        mail = step.first("connector.gmail", read, "mail")
        return Made("function", {"code": f"return mailOf(<{mail}.result>);"}, ".result")
    fields = {"event.mail": _MAIL, "event.feed": _FEED}.get(kind, ())
    return Made(kind, params, ".event", fields=fields)


def service(step: Step) -> Made:
    kind = step.node.kind
    service = kind.removesuffix("Trigger")
    if kind == "githubTrigger":
        events = ", ".join(str(event) for event in step.get("events", otherwise=[]))
        hint = (
            f"Publish it, and add its URL and its secret as a webhook of the repository, for {events or 'its events'}."
        )
        step.lose("It starts a run for each event that GitHub sends to its new URL.", hint)
        return Made("webhook", {"auth": "github"}, "")
    if kind in services()["triggers"]:
        return _polled(step, services()["triggers"][kind])
    if kind.removesuffix("Trigger") in services()["sent"].split():
        step.lose("It becomes a webhook.", f"Publish the workflow, and register the URL of the block at {service}.")
        return Made("webhook", {"auth": "none"}, ".body")
    step.lose("This trigger becomes a start block.", "Start the workflow through the API, a schedule or a webhook.")
    return Made("start", {})

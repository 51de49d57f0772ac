"""The output of the command line: events, findings, runs and waits as lines. Data in, text out; click removes colours
for outputs that are not a terminal.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from server.client import Event

Json = Mapping[str, Any]
STATUS_COLOURS = {
    "queued": "white",
    "pending": "white",
    "running": "blue",
    "retrying": "yellow",
    "waiting": "magenta",
    "needs_attention": "bright_magenta",
    "succeeded": "green",
    "failed": "red",
    "skipped": "bright_black",
    "cancelled": "bright_black",
}
OUTPUT_CHARS_MAX = 120  # of an output in an event line; --json has all of it
_MOMENT = re.compile(r"\b(\d{13}) ms\b", re.ASCII)
TYPE_WIDTH = 17  # of the longest event type
LOG_INDENT = 40  # of the further lines of a log: after type and time


def plain(text: str) -> str:
    """Return the text on one line and without control characters: texts come from workflows and from people who answer,
    and an escape sequence in them must not reach the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def styled_status(status: str) -> str:
    """A status in its color."""
    return click.style(status, fg=STATUS_COLOURS.get(status))


def diagnostic_lines(found: Iterable[Json]) -> list[str]:
    """`error /blocks/ask/params/title: needs a title` and, indented, how to fix it."""
    lines = []
    for item in found:
        colour = "red" if item["severity"] == "error" else "yellow"
        place = f"{item['file']}:{item['line']}" if item.get("file") else item["pointer"] or "/"
        head = f"{click.style(item['severity'], fg=colour, bold=True)} {plain(place)}"
        lines.append(f"{head}: {plain(item['message'])} [{item['code']}]")
        if item.get("hint"):
            lines.append(f"    {plain(item['hint'])}")
    return lines


def task_lines(tasks: Iterable[Json]) -> list[str]:
    """`[ ] Connect Slack` and, indented, how to do it."""
    lines = []
    for task in tasks:
        lines.append(f"[ ] {plain(task['title'])}")
        if task.get("hint"):
            lines.append(f"    {plain(task['hint'])}")
    return lines


def event_line(event: Event) -> str:
    """`   12  14:03:07.250  node.succeeded    send@fan[2]  {"id": 7}`; a log of several lines has them below."""
    clock = time.strftime("%H:%M:%S", time.localtime(event.at_ms / 1000)) + f".{event.at_ms % 1000:03d}"
    parts = [f"{event.seq:>5}", clock, click.style(f"{event.type:<{TYPE_WIDTH}}", fg=_event_colour(event))]
    if event.key:
        parts.append(event.key)
    if detail := event_detail(event):
        parts.append(detail)
    lines = str(event.data.get("message", "")).split("\n") if event.type == "node.log" else []
    below = [f"{'':>{LOG_INDENT}}{plain(line)}" for line in lines[1:]]
    if event.type != "run.finished":  # the failure of the block came right before it
        below += traceback_lines(event.data.get("error"), indent=7)
    return "\n".join(["  ".join(parts), *below])


def traceback_lines(error: Json | None, indent: int = 2) -> list[str]:
    """The frames of the user's files in which Python code failed."""
    text = str((error or {}).get("traceback") or "")
    return [click.style(f"{'':>{indent}}{plain(line)}", dim=True) for line in text.splitlines()]


def event_detail(event: Event) -> str:
    """Return the part of an event that matters to a person, on one line."""
    return plain(_detail(event))


def _detail(event: Event) -> str:
    data = event.data
    match event.type:
        case "run.started":
            by = f"by {data['by']}" if data.get("by") else ""
            before = f"continues run {data['continues']}" if data.get("continues") else ""
            return ", ".join(part for part in (by, before) if part)
        case "node.started":
            return f"attempt {event.attempt}" if event.attempt > 1 else ""
        case "retry.scheduled" if data.get("deferred"):
            return f"{_error(data)} (does not count, next attempt in {data.get('pause_ms', 0) / 1000:g} s)"
        case "node.failed" | "retry.scheduled":
            return _error(data)
        case "node.succeeded":
            route = data.get("route", "out")
            arrow = "" if route == "out" else f"-> {route or 'none'}"
            return " ".join(part for part in (arrow, short(data["output"]) if "output" in data else "") if part)
        case "node.skipped":
            because = f" because of {data['because']}" if data.get("because") else ""
            return f"{data.get('reason', '')}{because}"
        case "wait.opened":
            return " ".join(part for part in (str(data.get("kind", "")), data.get("reason")) if part)
        case "wait.closed":
            by = f" by {data['by']}" if data.get("by") else ""
            return f"{data.get('outcome', '')}{by}"
        case "node.left":
            return "and is entered again" if data.get("again") else ""
        case "region.sized" | "scope.opened" | "region.exited":
            return f"count {data.get('count')}"
        case "run.finished":
            after = f"continued as run {data['continued_as']}" if data.get("continued_as") else _error(data)
            return f"{data.get('status', '')} {after}".strip()
        case "run.cancelling":
            return str(data.get("reason", ""))
        case "step.started":
            return f"{data['n']} {data['kind']} {data['name']}"
        case "step.finished":
            put_out = short(data["output"]) if "output" in data else _error(data)
            return "  ".join(part for part in (str(data["n"]), put_out, used_text(data)) if part)
        case "step.retrying":
            pause = max(0, data["due_ms"] - event.at_ms) / 1000
            return f"{data['n']} {_error(data)} (try {data['times'] + 1} in {pause:g} s)"
        case "step.lost":
            return f"{data['n']} {'is done again' if data['again'] else 'needs a decision'}"
        case "node.state":
            return short(data["output"]) if "output" in data else ""
        case "update.answered":
            answer = f"refused: {data['refused']}" if "refused" in data else short(data.get("output"))
            return f"{data['name']}  {answer}"
        case "node.log":
            first = str(data.get("message", "")).partition("\n")[0]
            return f"text: {first}" if data.get("stream") == "text" else first
        case _:  # a type that this program does not know may still have a message
            return str(data.get("message", ""))


def inbox_lines(waits: Sequence[Json]) -> list[str]:
    """A table, and under each row the link that answers it, or what else ends the wait. The title of an attempt that
    needs attention does not say what was done, so its text follows."""
    head = ("AGE", "KIND", "WORKFLOW", "NODE", "QUESTION")
    rows = [
        (age(wait["age_s"]), str(wait["kind"]), plain(wait["workflow"]), str(wait["key"]), _asked(wait))
        for wait in waits
    ]
    if not rows:
        return []
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(4)]
    lines = [click.style(_columns(head, widths), dim=True)]
    for wait, row in zip(waits, rows, strict=True):
        lines.append(_columns((*row[:4], click.style(row[4], bold=True)), widths))
        lines.append(f"    {wait.get('link') or _how_to_signal(wait)}")
        if wait["kind"] == "attention":
            lines += [f"    {plain(line)}" for line in str(wait["request"].get("text", "")).splitlines()]
        lines += _message_lines(wait)
    return lines


def step_lines(steps: Sequence[Json]) -> list[str]:
    """Return a line for each step of a block: number, kind, name, status, duration, usage, cost, and its
    place in the code."""
    widths = [max((len(str(step[name])) for step in steps), default=0) for name in ("n", "kind", "name", "status")]
    lines = []
    for step in steps:
        status, ended = step["status"], step.get("finished_at_ms")
        parts = [
            f"{step['n']:>{widths[0]}}  {step['kind']:<{widths[1]}}  {plain(step['name']):<{widths[2]}}",
            click.style(f"{status:<{widths[3]}}", fg=STATUS_COLOURS.get(status, "yellow")),
            "" if ended is None else f"{(ended - step['started_at_ms']) / 1000:.3f} s",
            used_text(step),
            _error(step),
            f"line {step['line']}" if step.get("line") else "",
            plain(step.get("group", "")),
            f"began {step['times']} times" if step.get("times", 1) > 1 else "",
            with_clock(f"next try at {step['due_ms']} ms") if step.get("due_ms") else "",
        ]
        lines.append("  ".join(part for part in parts if part))
    return lines


def used_text(step: Json) -> str:
    """`input_tokens 7, output_tokens 3, $0.25`."""
    parts = [f"{plain(name)} {count}" for name, count in (step.get("usage") or {}).items()]
    return ", ".join(parts + ([f"${step['cost']:g}"] if step.get("cost") is not None else []))


def usage_lines(found: Json) -> list[str]:
    """Return a table with the sum in its last line, and the source of the prices."""
    head = (str(found["by"]).upper(), "CALLS", "INPUT", "CACHED", "OUTPUT", "COST")
    rows = [_usage_row(plain(str(item["key"])), item) for item in found["items"]]
    period = f"{found['from']} to {found['to']}, UTC"
    if not rows:
        return [f"No model was asked from {period}."]
    rows.append(_usage_row("total", found["total"]))
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [
        "  ".join(
            text.ljust(width) if n == 0 else text.rjust(width)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    notes = [period]
    if found["prices"]:
        notes.append("prices: " + ", ".join(plain(name) for name in found["prices"]))
    if found["total"]["unpriced"]:
        notes.append(f"{found['total']['unpriced']} calls have no known price and are not part of the cost")
    return [click.style(lines[0], dim=True), *lines[1:-1], click.style(lines[-1], bold=True), "; ".join(notes)]


def _usage_row(key: str, spent: Json) -> tuple[str, ...]:
    counts = (spent[name] for name in ("calls", "input_tokens", "cached_tokens", "output_tokens"))
    cost = "no price known" if spent["cost"] is None else f"${spent['cost']}" + ("+" if spent["unpriced"] else "")
    return (key, *(f"{count:,}" for count in counts), cost)


def signal_lines(signals: Sequence[Json]) -> list[str]:
    """Return a line for each signal: number, name, correlation, the wait that took it, payload."""
    return [
        f"{signal['seq']:>4}  {plain(signal['name'])}"
        + (f" of {plain(signal['correlation'])}" if signal["correlation"] else "")
        + (f"  received by {signal['taken_by']}" if signal["taken_by"] else "  kept")
        + f"  {plain(short(signal['payload']))}"
        for signal in signals
    ]


def _asked(wait: Json) -> str:
    actions = f"  [{', '.join(wait['actions'])}]" if wait.get("actions") else ""
    until = f"  expires in {left(_until_s(wait, wait['expires_at_ms']))}" if wait.get("expires_at_ms") else ""
    return plain(question(wait)) + plain(actions) + until


def _message_lines(wait: Json) -> Iterator[str]:
    """The messages that could not be sent, and the times of reminders."""
    for sent in wait.get("notifications") or ():
        to = f"{sent['channel']} to {plain(sent['to'])}"
        if sent["status"] == "failed":
            yield click.style(f"    {to}: {plain(sent['error'])}", fg="red")
        elif sent.get("reminder") and sent["status"] == "pending":
            yield f"    reminder by {to} in {left(_until_s(wait, sent['due_at_ms']))}"


def _until_s(wait: Json, at_ms: int) -> float:
    """Return the seconds until then on the clock of the server."""
    return float((at_ms - wait["opened_at_ms"]) / 1000 - wait["age_s"])


def _columns(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]])


def question(wait: Json) -> str:
    """`Manager: Expense of 420 EUR`; the name of the block alone when nothing else is asked."""
    request = wait.get("request")
    title = request.get("title") if isinstance(request, Mapping) else None
    return f"{wait['label']}: {title}" if title and title != wait["label"] else str(wait["label"])


def run_lines(runs: Sequence[Json], now_ms: int | None = None) -> list[str]:
    """Return a line for each run: id, status, workflow, version, age, and the reason if it is held up."""
    now = int(time.time() * 1000) if now_ms is None else now_ms
    names = [f"{run['workflow']}@{run['version']}" if run.get("version") else str(run["workflow"]) for run in runs]
    names = [plain(f"step {name}" if run.get("step") else name) for run, name in zip(runs, names, strict=True)]
    width = max(map(len, names), default=0)
    return [
        f"{run['id']}  {styled_status(run['status'])}{' ' * (9 - len(run['status']))}  {name:<{width}}"
        f"  {age((now - run['created_at_ms']) / 1000)}{_held_up(run, now)}"
        for run, name in zip(runs, names, strict=True)
    ]


def _held_up(run: Json, now_ms: int) -> str:
    if run.get("stale"):
        return "  " + stale_text(run, now_ms)
    return "  " + click.style(f"waits for {plain(run['lacks'])}", fg="yellow") if run.get("lacks") else ""


def stale_text(run: Json, now_ms: int) -> str:
    """`stale: its worker stopped responding 12 s ago`."""
    since = age((now_ms - run["stale_since_ms"]) / 1000)
    return click.style(f"stale: its worker stopped responding {since}", fg="yellow")


def workflow_lines(workflows: Sequence[Json], now_ms: int | None = None) -> list[str]:
    """A table: name, active version, how many there are, when it was saved, last run."""
    now = int(time.time() * 1000) if now_ms is None else now_ms
    rows = []
    for one in workflows:
        last = one["last_run"]
        ran = f"{styled_status(last['status'])} {age((now - last['created_at_ms']) / 1000)}" if last else "never"
        saved = age((now - one["created_at_ms"]) / 1000)
        rows.append((plain(one["name"]), str(one["version"]), str(one["versions"]), saved, ran))
    return _table(("NAME", "ACTIVE", "VERSIONS", "SAVED", "LAST RUN"), rows)


def version_lines(page: Json, now_ms: int | None = None) -> list[str]:
    """A table: version, time of saving, hash, and a mark at the active one."""
    now = int(time.time() * 1000) if now_ms is None else now_ms
    rows = [
        (
            str(one["version"]),
            age((now - one["created_at_ms"]) / 1000),
            one["hash"][:12],
            "active" if one["version"] == page["active"] else "",
        )
        for one in page["versions"]
    ]
    return _table(("VERSION", "SAVED", "HASH", ""), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Only the last column may be styled."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head) - 1)]
    return [click.style(_columns(head, widths), dim=True), *(_columns(row, widths).rstrip() for row in rows)]


def age(seconds: float) -> str:
    """`5 s ago`, `12 min ago`, `3 h ago`, `9 d ago`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def left(seconds: float) -> str:
    """Rounded to one unit, as in the editor: 7 days just begun are `7 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size * 1.5:
            return f"{round(seconds / size)} {unit}"
    return f"{max(0, round(seconds))} s"


def short(value: Any) -> str:
    """JSON on one line, cut to OUTPUT_CHARS_MAX characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= OUTPUT_CHARS_MAX else text[: OUTPUT_CHARS_MAX - 1] + "…"


def error_text(error: Json) -> str:
    """`http_status: POST http://… answered 503`."""
    return f"{error.get('code')}: {error.get('message')}"


def with_clock(text: str) -> str:
    """Unix milliseconds in a sentence of the engine, `due at 1700000005000 ms`, on the clocks of this machine."""
    return _MOMENT.sub(lambda at: time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(at[1]) / 1000)), text)


def _error(data: Json) -> str:
    error = data.get("error")
    return error_text(error) if isinstance(error, dict) else ""


def _event_colour(event: Event) -> str | None:
    if event.type == "run.finished":
        return STATUS_COLOURS.get(str(event.data.get("status")))
    return {
        "node.started": "blue",
        "node.succeeded": "green",
        "region.exited": "green",
        "node.failed": "red",
        "retry.scheduled": "yellow",
        "wait.opened": "magenta",
        "node.left": "magenta",
        "step.finished": "green",
        "step.lost": "yellow",
        "step.retrying": "yellow",
        "node.skipped": "bright_black",
    }.get(event.type)


def _how_to_signal(wait: Json) -> str:
    from compiler.tracing.asks import SIGNAL as UPDATE  # for few commands

    if wait["kind"] == "signal" and (wait.get("name") or "").startswith(UPDATE):
        return plain(f"weft update {wait['run']} {wait['name'].removeprefix(UPDATE)} JSON")
    if wait["kind"] == "signal":
        correlation = f" --correlation {wait['correlation']}" if wait.get("correlation") else ""
        return plain(f"weft signal {wait['run']} {wait.get('name')}{correlation}")
    return f"waits for a {wait['kind']} in run {wait['run']}"

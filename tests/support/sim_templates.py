"""Eleven workflows in the form of the templates that Sim shows on its first page: the same types of blocks, names of
settings, wiring and forms of references, in other words. A setting without a value is null there, as it is here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

Json = dict[str, Any]

REPORT = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "total": {"type": "number"},
        "moods": {"type": "object", "properties": {"good": {"type": "number"}}, "required": ["good"]},
    },
    "required": ["summary", "total", "moods"],
    "additionalProperties": False,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "email": {"type": "string"}},
    "required": ["name", "email"],
    "additionalProperties": False,
}
MAIL = {
    "type": "object",
    "properties": {"subject": {"type": "string"}, "body": {"type": "string"}, "attendees": {"type": "string"}},
    "required": ["subject", "body", "attendees"],
    "additionalProperties": False,
}
ROW = {
    "type": "object",
    "properties": {"row": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "minItems": 1}},
    "required": ["row"],
    "additionalProperties": False,
}


def _block(type: str, name: str, settings: Json, *, trigger: bool = False, data: Json | None = None) -> Json:
    return {
        "type": type,
        "name": name,
        "position": {"x": 150, "y": 150},
        "enabled": True,
        "horizontalHandles": True,
        "advancedMode": False,
        "triggerMode": trigger,
        "height": 114,
        "subBlocks": {
            id: {"id": id, "type": "short-input", "value": value}
            for id, value in {**settings, "manualCredential": None}.items()
        },
        "outputs": {},
        "data": data or {},
        "locked": False,
    }


def _agent(
    name: str,
    model: str,
    system: str,
    user: str | None,
    tools: Sequence[Json] = (),
    *,
    format: Any = None,
    key: str | None = None,
    data: Json | None = None,
) -> Json:
    said = [{"role": "system", "content": system}, *([{"role": "user", "content": user}] if user else [])]
    settings = {
        **dict.fromkeys(("skills", "maxTokens", "conversationId", "reasoningEffort", "slidingWindowSize")),
        "model": model,
        "messages": said,
        "tools": list(tools),
        "apiKey": key,
        "responseFormat": None if format is None else json.dumps(format),
        "memoryType": "none",
        "temperature": 0.3,
    }
    return _block("agent", name, settings, data=data)


def _tool(type: str, title: str | None = None, **params: str) -> Json:
    tool = {"type": type, "params": params, "operation": "search", "isExpanded": True, "usageControl": "auto"}
    return tool if title is None else {**tool, "title": title}


def _start(*fields: tuple[str, str]) -> Json:
    listed = [{"id": name, "name": name, "type": type, "value": "", "collapsed": False} for name, type in fields]
    return _block("start_trigger", "Start", {"inputFormat": listed})


def _schedule(name: str, **times: str) -> Json:
    nothing = [{"id": "a", "name": "", "type": "string", "value": "", "collapsed": False}]
    return _block("schedule", name, {"inputFormat": nothing, **times}, trigger=True)


def _github(event: str) -> Json:
    settings = {"webhookSecret": "{{GITHUB_WEBHOOK_SECRET}}", "selectedTriggerId": event, "sslVerification": "enabled"}
    return _block("github_v2", "githubTrigger", settings, trigger=True)


def _slack(text: str) -> Json:
    settings = {"text": text, "operation": "send", "authMethod": "oauth", "channel": None, "messageFormat": "text"}
    return _block("slack", "slackNotify", settings)


def _sheet(values: str, data: Json | None = None) -> Json:
    settings = {"values": values, "operation": "append", "manualSheetName": "Sheet1", "credential": "9XZ3"}
    return _block("google_sheets_v2", "Sheet", settings, data=data)


def _note(text: str) -> Json:
    return _block("note", "Setup", {"content": text})


def _template(name: str, wires: str, blocks: Json, loops: Json | None = None, parallels: Json | None = None) -> Json:
    """Wires as `a b; c/handle d`."""
    edges = []
    for wire in wires.split("; "):
        source, target = wire.split()
        id, _, handle = source.partition("/")
        edges.append({"source": id, "target": target, "sourceHandle": handle or "source", "targetHandle": "target"})
    state = {
        "blocks": {id: {"id": id, **block} for id, block in blocks.items()},
        "edges": edges,
        "loops": loops or {},
        "parallels": parallels or {},
        "metadata": {"name": name, "description": "New workflow", "color": "#3972F6"},
        "variables": {},
    }
    return {"version": "1.0", "exportedAt": "2026-03-09T21:40:19.014Z", "state": state}


def service(type: str, **settings: Any) -> Json:
    """A workflow of a start block and one of a service, in the form of a template whose settings were filled in."""
    blocks = {"a": _start(("Text", "string")), "b": _block(type, "Service", settings)}
    return _template(type, "a b", blocks)


def _named(schema: Json) -> Json:
    return {"name": "answer", "schema": schema, "strict": True}


TEMPLATES: tuple[Json, ...] = (
    _template(
        "ocr-invoice-db",
        "c d; b c; a b",
        {
            "a": _block("gmail_v2", "gmailTrigger", {"labelFilterBehavior": "INCLUDE"}, trigger=True),
            "b": _block("file_v3", "File Parser", {"fileUrl": "<gmailtrigger.email.attachments[0].url>"}),
            "c": _agent(
                "invoiceReader",
                "gpt-5.2",
                "Read the fields of an invoice",
                "The invoice is at <gmailtrigger.email.attachments[0].url>.",
                [_tool("mistral_parse_v3", "Mistral Parser", fileReference="<fileparser.files[0]>")],
            ),
            "d": _block(
                "supabase",
                "invoices",
                {
                    "data": "<invoiceReader.content>",
                    "table": "invoices",
                    "apiKey": "{{SUPABASE_API_KEY}}",
                    "operation": "insert",
                },
            ),
            "e": _note("Set {{SUPABASE_API_KEY}}"),
        },
    ),
    _template(
        "gh-release-agent",
        "a b; b c",
        {
            "a": _github("github_release_published"),
            "b": _agent(
                "summarizer",
                "claude-sonnet-4-5",
                "Summarize a release",
                "<githubtrigger.release.name> of <githubtrigger.repository.full_name>: <githubtrigger.release.body>",
            ),
            "c": _slack("*<githubtrigger.release.name>* (<githubtrigger.release.tag_name>)\n\n<summarizer.content>"),
            "d": _note("Connect Slack"),
        },
    ),
    _template(
        "meeting-followup-agent",
        "a b; b c; c d; d e; e/loop-start-source f",
        {
            "a": _schedule("Start", timezone="America/New_York", scheduleType="minutes", minutesInterval="15"),
            "b": _block(
                "google_calendar_v2", "calendarEvents", {"operation": "list", "timeMin": "", "calendarId": None}
            ),
            "c": _agent(
                "emailDrafter",
                "gemini-2.5-pro",
                "Write an email after a meeting",
                "The meeting: <calendarevents.events>",
                format={"type": "json_schema", "json_schema": _named(MAIL)},
            ),
            "d": _block(
                "function",
                "parseAttendees",
                {
                    "code": "const all = input.attendees || ''\nreturn {attendees: all.split(',')}",
                    "language": "javascript",
                },
            ),
            "e": _block(
                "loop",
                "attendeeLoop",
                {"loopType": "forEach", "collection": "<parseAttendees.result.attendees>"},
                data={"width": 550, "height": 588, "loopType": "forEach", "whileCondition": ""},
            ),
            "f": _block(
                "gmail_v2",
                "sendEmail",
                {
                    "to": "<loop.currentItem>",
                    "subject": "<emailDrafter.content.subject>",
                    "body": "<emailDrafter.content.body>",
                    "operation": "send_gmail",
                },
                data={"extent": "parent", "parentId": "e"},
            ),
            "g": _note("Connect the calendar"),
        },
        loops={
            "e": {
                "id": "e",
                "nodes": ["f"],
                "iterations": 5,
                "loopType": "forEach",
                "forEachItems": "<parseAttendees.result.attendees>",
                "whileCondition": "",
            }
        },
    ),
    _template(
        "resume-parser",
        "a b; b c",
        {
            "a": _start(("resumeFile", "file[]")),
            "b": _agent(
                "resumeParser",
                "",
                "Read the fields of a resume",
                None,
                [_tool("mistral_parse_v3", "Mistral Parser", fileReference="<start.resumeFile>")],
                format=_named(PERSON),
            ),
            "c": _sheet('[["<resumeParser.content.name>", "<resumeParser.content.email>"]]'),
            "d": _note("Connect Google Sheets"),
        },
    ),
    _template(
        "email-triage",
        "a b",
        {
            "a": _block("gmail_v2", "Gmail1", {"labelFilterBehavior": "INCLUDE", "markAsRead": False}, trigger=True),
            "b": _agent(
                "Agent1",
                "claude-sonnet-4-5",
                "Sort mails. Use Slack for urgent ones and Linear for faults.",
                "From <gmail1.email.from>: <gmail1.email.subject>\n<gmail1.email.bodyText>",
                [_tool("linear", "Linear", priority="0"), _tool("slack", "Slack", authMethod="oauth")],
            ),
            "c": _note("Connect Gmail"),
        },
    ),
    _template(
        "competitor-monitor",
        "a b; b c",
        {
            "a": _schedule("dailyTrigger", timezone="America/New_York", scheduleType="daily", dailyTime="08:00"),
            "b": _agent(
                "competitorMonitor",
                "",
                "Compare shops",
                "Read https://one.example and https://two.example",
                [_tool("firecrawl", "Firecrawl", apiKey="{{FIRECRAWL_API_KEY}}")],
                key="{{XAI_API_KEY}}",
            ),
            "c": _slack("*Report*\n\n<competitormonitor.content>"),
        },
    ),
    _template(
        "brand-mention",
        "a b; b c",
        {
            "a": _schedule("Schedule", timezone="UTC", scheduleType="hourly", hourlyMinute="0"),
            "c": _block(
                "notion_v2",
                "Notion",
                {
                    "title": "Mentions",
                    "content": "<brandmentiontracker.summary>\n<brandmentiontracker.moods.good> of "
                    "<brandmentiontracker.total>",
                    "parentId": "placeholder_database_id",
                    "operation": "notion_create_page",
                },
            ),
            "b": _agent(
                "brandMentionTracker",
                "gemini-2.5-flash",
                "",
                "Find what is said about us.",
                [_tool("reddit", "Reddit Search", credential="cred_27"), _tool("x", "X Search", sortOrder="recency")],
                format=_named(REPORT),
            ),
            "d": _note("**Connect Reddit**"),
        },
    ),
    _template(
        "lead-enricher",
        "p/parallel-start-source b; b c; a p",
        {
            "a": _start(("Email", "string")),
            "b": _agent(
                "Agent",
                "",
                "Find the profile of a person",
                "<dataparallel.currentItem>",
                [_tool("linkedin", manualCredential="")],
                format=_named(ROW),
                data={"extent": "parent", "parentId": "p"},
            ),
            "p": _block(
                "parallel",
                "dataParallel",
                {"collection": "<agent.content>", "parallelType": "collection"},
                data={"width": 953, "height": 559, "count": 5, "distribution": "<start.emails>", "nodes": ["b", "c"]},
            ),
            "c": _sheet("<agent.row>", data={"extent": "parent", "parentId": "p"}),
        },
        parallels={
            "p": {
                "id": "p",
                "nodes": ["b", "c"],
                "distribution": "<start.emails>",
                "count": 5,
                "parallelType": "collection",
            }
        },
    ),
    _template(
        "customer-feedback-digest",
        "a b; b c",
        {
            "a": _schedule("Schedule", timezone="UTC", scheduleType="daily", dailyTime="09:00"),
            "c": _slack("<agent.content>"),
            "b": _agent(
                "Agent",
                "",
                "Sum up what customers say",
                "Read the records, then name what matters.",
                [_tool("airtable", "Airtable - List Records", credential="cred_0f")],
            ),
        },
    ),
    _template(
        "pr-review",
        "a b; b c",
        {
            "a": _github("github_pr_opened"),
            "b": _agent(
                "reviewer",
                "gpt-5.2",
                "Review changes of code",
                "<githubtrigger.pull_request.title>: <githubtrigger.pull_request.head.ref> -> "
                "<githubtrigger.pull_request.base.ref>, +<githubtrigger.pull_request.additions> lines",
            ),
            "c": _slack("*Review* of <githubtrigger.pull_request.html_url>\n<reviewer.content>"),
        },
    ),
    _template(
        "knowledge-base-qa",
        "a b",
        {
            "a": _start(("input", "string"), ("conversationId", "string"), ("files", "file[]")),
            "b": _agent(
                "Agent",
                "gemini-2.5-pro",
                "Answer from what is known",
                "<start.input>",
                [_tool("knowledge", "Knowledge Base", knowledgeBaseId="placeholder-kb-id")],
            ),
            "c": _note("Deploy it as a chat"),
        },
    ),
)


def tell_slack() -> Json:
    """Return a workflow of Sim, as it exports one: without accounts, and without the channel."""
    blocks = {name: one["state"]["blocks"] for one in TEMPLATES for name in [one["state"]["metadata"]["name"]]}
    made = deepcopy(TEMPLATES[0])
    start, told = (deepcopy(blocks[name][id]) for name, id in (("knowledge-base-qa", "a"), ("pr-review", "c")))
    start["subBlocks"]["inputFormat"]["value"] = []
    told["subBlocks"]["text"]["value"] = "All is well"
    edge = {"source": "a", "target": "c", "sourceHandle": "source", "targetHandle": "target"}
    made["state"] |= {"blocks": {"a": start, "c": told}, "edges": [edge]}
    made["state"]["metadata"] = {"name": "notify-slack", "description": "", "color": "#3972F6"}
    return made

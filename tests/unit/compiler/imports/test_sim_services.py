"""Sim's blocks of services that become blocks of connectors."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.imports.sim import convert
from compiler.imports.sim_services import SERVICES, _operation_of, tool_of
from compiler.imports.sim_text import Texts
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry
from tests.support.sim_templates import TEMPLATES, service
from tests.unit.compiler.imports.sim_documents import block, compiled

Json = dict[str, Any]
REGISTRY = Registry.load(connectors())
NAMED = {"credential": "9XZ3", "manualCredential": ""}
PROJECT = {"project": "p"}
NOTE = {"name": "N", "content": "C"}
# Type, settings, and our params without the account.
CASES: tuple[tuple[str, Json, Json], ...] = (
    (
        "slack",
        {
            "operation": "send",
            "authMethod": "oauth",
            "messageFormat": "text",
            "manualChannel": "C1",
            "text": "<start.Text>",
        },
        {"operation": "send_message", "channel": "C1", "text": "<start.Text>"},
    ),
    (
        "slack",
        {"operation": "react", "channel": "C1", "reactionTimestamp": "1.2", "emojiName": "eyes"},
        {"operation": "add_reaction", "channel": "C1", "ts": "1.2", "emoji": "eyes"},
    ),
    (
        "gmail_v2",
        {"to": "a@example.org", "subject": "S", "body": "<start.Text>", "contentType": "text"},
        {"operation": "send", "to": "a@example.org", "subject": "S", "text": "<start.Text>"},
    ),
    (
        "gmail_v2",
        {"operation": "archive_gmail", "actionMessageId": "m1"},
        {"operation": "change_labels", "message": "m1", "remove": ["INBOX"]},
    ),
    (
        "google_sheets_v2",
        {
            **{"operation": "append", "manualSpreadsheetId": "s1", "manualSheetName": "Sheet1", "cellRange": "A1:B2"},
            **{"values": '[["<start.Text>", "2"]]', "valueInputOption": "RAW", "insertDataOption": "INSERT_ROWS"},
        },
        {
            **{"operation": "append_rows", "spreadsheet": "s1", "range": "Sheet1!A1:B2"},
            **{"rows": [["<start.Text>", "2"]], "cells": "RAW"},
        },
    ),
    (
        "google_sheets",
        {"operation": "read", "spreadsheetId": "s1", "range": "Sheet1!A1:B2"},
        {"operation": "read_rows", "spreadsheet": "s1", "range": "Sheet1!A1:B2"},
    ),
    (
        "notion_v2",
        {"operation": "notion_add_database_row", "databaseId": "d1", "properties": '{"Name": {"title": []}}'},
        {"operation": "create_page", "database": "d1", "properties": {"Name": {"title": []}}},
    ),
    (
        "linear_v2",
        {"operation": "linear_create_issue", "manualTeamId": "t1", "title": "T", "priority": "2", "labelIds": "l1, l2"},
        {"operation": "create_issue", "team": "t1", "title": "T", "priority": 2, "labels": ["l1", "l2"]},
    ),
    (
        "discord",
        {"operation": "discord_get_messages", "serverId": "1", "channelId": "2", "limit": "5"},
        {"operation": "read_messages", "channel": "2", "count": 5},
    ),
    (
        "github_v2",
        {"operation": "github_issue_comment", "owner": "o", "repo": "r", "issue_number": "7", "body": "B"},
        {"operation": "comment", "owner": "o", "repo": "r", "number": 7, "body": "B"},
    ),
    (
        "telegram",
        {"operation": "telegram_message", "chatId": "c1", "text": "Hi"},
        {"operation": "send_message", "chat": "c1", "text": "Hi"},
    ),
    (
        "s3",
        {"operation": "put_object", "region": "eu-west-1", "bucketName": "b", "objectKey": "k", "content": "C"},
        {"operation": "put_object", "region": "eu-west-1", "bucket": "b", "key": "k", "content": "C"},
    ),
    (
        "outlook",
        {"to": "a@example.org, <start.Text>", "subject": "S", "body": "B", "contentType": "html"},
        {
            "operation": "send_mail",
            "to": [{"emailAddress": {"address": "a@example.org"}}, {"emailAddress": {"address": "<start.Text>"}}],
            "subject": "S",
            "text": "B",
            "body_type": "HTML",
        },
    ),
    (
        "google_calendar_v2",
        {"operation": "create", "summary": "S", "startDateTime": "T1", "endDateTime": "T2", "timeZone": "Europe/Rome"},
        {
            "operation": "create_event",
            "summary": "S",
            "start": {"dateTime": "T1", "timeZone": "Europe/Rome"},
            "end": {"dateTime": "T2", "timeZone": "Europe/Rome"},
        },
    ),
    (
        "jira",
        {"operation": "add_comment", "domain": "acme.atlassian.net", "manualIssueKey": "A-1", "commentBody": "C"},
        {"operation": "comment", "site": "acme", "issue": "A-1", "text": "C"},
    ),
    (
        "supabase",
        {"projectId": "p", "table": "t", "filter": "id=gt.5&open=is.true", "orderBy": "made_at DESC"},
        {
            "operation": "list_rows",
            "project": "p",
            "table": "t",
            "where": "(id.gt.5,open.is.true)",
            "order": "made_at.desc",
        },
    ),
    (
        "hubspot",
        {"operation": "get_contacts", "contactId": "7"},
        {"operation": "read", "object": "contacts", "record": "7"},
    ),
    ("hubspot", {"operation": "get_contacts"}, {"operation": "list", "object": "contacts"}),
    (
        "resend",
        {"fromAddress": "a@x.org", "to": "b@x.org,c@x.org", "subject": "S", "body": "B", "contentType": "html"},
        {"operation": "send", "from": "a@x.org", "to": ["b@x.org", "c@x.org"], "subject": "S", "html": "B"},
    ),
    (
        "clickup",
        {"manualListId": "9", "name": "N", "assignees": "7, 8", "tags": "a,b", "priority": "2"},
        {"operation": "create_task", "list": "9", "name": "N", "assignees": [7, 8], "tags": ["a", "b"], "priority": 2},
    ),
)


@pytest.mark.parametrize(("type", "settings", "params"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_a_block_of_a_service_becomes_one_of_a_connector(type: str, settings: Json, params: Json) -> None:
    source = service(type, **settings, **NAMED)
    imported = convert(source, catalog=REGISTRY)
    made = imported.document["blocks"]["b"]
    plain = type.removesuffix("_v2")
    assert made["type"] == f"connector.{plain}" and "description" not in made
    account = made["params"].keys() - {*params, "guild"}
    assert {name: made["params"][name] for name in params} == params
    assert account == ({"credential"} if plain in ("s3", "telegram") else {"connection"})
    [found] = imported.diagnostics
    assert found.message.endswith(" is not imported.") and found.block == "b" and found.hint
    made = compiled(source, REGISTRY)
    assert made.plan is not None, made.diagnostics


def of(type: str, **settings: Any) -> tuple[Json, list[str]]:
    imported = convert(service(type, **settings), catalog=REGISTRY)
    return imported.document["blocks"]["b"], [found.message for found in imported.diagnostics]


def test_tokens_that_are_environment_names_stay() -> None:
    block, said = of("discord", operation="discord_send_message", channelId="1", content="x", botToken="{{BOT}}")
    assert block["params"]["credential"] == "${BOT}"
    assert said == ['Discord "Service": Its Discord credential is read from the secret BOT.']
    keys = {"accessKeyId": "{{KEY_ID}}", "secretAccessKey": "{{KEY}}", "region": "us-east-1"}
    block, said = of("s3", operation="list_objects", bucketName="b", **keys)
    assert block["params"]["credential"] == "${KEY_ID}:${KEY}" and len(said) == 2
    imported = convert(
        service("s3", operation="list_objects", bucketName="b", **keys), catalog=REGISTRY, env_names=["KEY_ID", "KEY"]
    )
    assert imported.document["blocks"]["b"]["params"]["credential"] == "${KEY_ID}:${KEY}" and not imported.diagnostics


def test_tokens_in_the_document_are_dropped() -> None:
    block, said = of("slack", channel="C1", text="x", authMethod="bot_token", botToken="xoxb-1")
    assert block["params"] == {"operation": "send_message", "channel": "C1", "text": "x", "connection": "slack"}
    assert said == ['Slack "Service": Its Slack account is not imported.']
    block, said = of("telegram", operation="telegram_message", chatId="1", text="x", botToken="123:abc")
    assert block["params"]["credential"] == "${TELEGRAM_CREDENTIAL}" and "123:abc" not in str(said)


def test_other_settings_are_named() -> None:
    sent = {"operation": "send_gmail", "to": "a@example.org", "subject": "S", "body": "B"}
    _, said = of("gmail_v2", **sent, bcc="b@example.org", contentType="html")
    assert said[1:] == ['Gmail "Service": These settings are not imported: bcc, contentType.']


@pytest.mark.parametrize(
    ("type", "settings"),
    [
        ("slack", {"operation": "canvas", "channel": "C1", "title": "T", "content": "C"}),
        ("slack", {"operation": "send", "destinationType": "dm", "dmUserId": "U1", "channel": "C1", "text": "x"}),
        ("slack", {"operation": "send", "channel": "C1", "text": "x", "files": "<start.Text>"}),
        ("google_sheets_v2", {"operation": "append", "spreadsheetId": "s", "sheetName": "A", "values": '[{"a": 1}]'}),
        ("s3", {"operation": "get_object", "s3Uri": "https://b.s3.us-east-1.amazonaws.com/k"}),
        ("github_v2", {"owner": "o", "repo": "r"}),
        ("airtable", {"operation": "getSchema"}),
        ("knowledge", {"operation": "list_chunks", "documentId": "d"}),
        ("file", {"inputMethod": "url", "filePath": "https://example.com/a.pdf"}),
    ],
)
def test_others_stay_foreign(type: str, settings: Json) -> None:
    block, said = of(type, **settings)
    assert block["type"] == "function" and "was not imported" in block["params"]["code"]
    assert "in its place" in said[0]


def test_members_and_values_that_cannot_be_are_no_params() -> None:
    lead = {"operation": "create_lead", "lastName": "Ada", "company": "", "status": "New"}
    block, said = of("salesforce", **lead)
    assert block["params"]["values"] == {"LastName": "Ada", "Status": "New"} and len(said) == 1
    block, said = of("sentry", operation="sentry_issues_list", organizationSlug="o", sort="priority", statsPeriod="24h")
    assert "sort" not in block["params"] and block["params"]["period"] == "24h"
    assert said[-1] == 'Sentry "Service": These settings are not imported: sort.'


@pytest.mark.parametrize(
    ("settings", "params"),
    [
        (
            {"query": "<start.Text>", "topK": "3", "searchMode": "vector"},
            {"operation": "search", "query": "<start.Text>", "limit": 3, "mode": "vector"},
        ),
        (
            {"operation": "create_document", "name": "N", "content": "C"},
            {"operation": "add", "name": "N", "content": "C"},
        ),
        (
            {"operation": "upload_chunk", "documentId": "<start.Text>", "content": "C"},
            {"operation": "add", "name": "<start.Text>", "content": "C"},
        ),
    ],
)
def test_knowledge_becomes_our_block_with_an_open_collection(settings: Json, params: Json) -> None:
    source = service("knowledge", **settings, knowledgeBaseSelector="5d3f")
    made = convert(source, catalog=REGISTRY).document
    assert made["blocks"]["b"]["type"] == "knowledge"
    assert made["blocks"]["b"]["params"] == params
    [found] = [found for found in compiled(source, REGISTRY).diagnostics if found.code == "required"]
    assert found.block == "b" and "Collection is required" in found.message


def test_services_without_a_connector_are_requested_by_http() -> None:
    block, said = of("notion_v2", operation="notion_create_page", parentId="p", title="<start.Text>")
    assert block["type"] == "http" and block["params"]["connection"] == "notion"
    assert block["params"]["body"]["parent"] == {"page_id": "p"} and "{{" not in str(block)
    assert block["params"]["body"]["properties"]["title"]["title"][0]["text"]["content"] == "<start.Text>"
    assert said == ['Notion "Service": Its Notion account is not imported.']
    texts = Texts({}, None, catalog=REGISTRY)
    pages = {"type": "firecrawl", "title": "Pages", "operation": "scrape", "params": {"apiKey": "{{FIRE_KEY}}"}}
    made, _ = tool_of(pages, (), texts)
    assert made["block"] == "http" and made["params"]["body"]["url"] == "{{url}}"
    assert made["params"]["headers"] == {"Authorization": "Bearer ${FIRE_KEY}"}
    assert made["arguments"]["required"] == ["url"]


def test_references_reach_the_result() -> None:
    source = service("slack", channel="C1", text="x")
    source["state"]["blocks"]["c"] = {**source["state"]["blocks"]["a"], "id": "c", "type": "function", "name": "Read"}
    source["state"]["blocks"]["c"]["subBlocks"] = {"code": {"value": "return <service.ts>"}}
    source["state"]["edges"].append({"source": "b", "target": "c", "sourceHandle": "source"})
    made = convert(source, catalog=REGISTRY).document
    assert made["blocks"]["c"]["params"]["code"] == "return <service.result.ts>"


def test_the_table_names_what_connectors_have() -> None:
    for kind, row in SERVICES.items():
        name, operations = row.get("service", kind), row["operations"]
        spec = REGISTRY.get(row.get("type") or f"connector.{name}")
        assert spec is not None, name
        if spec.type == "sql":  # its operations are statements
            continue
        properties = spec.params["properties"]
        assert row.get("default") is None or row["default"] in operations, name
        for operation in map(_operation_of, operations.values()):
            assert operation.name in properties["operation"]["enum"], (name, operation.name)
            for field in {field.param.partition(".")[0] for field in operation.fields} - {"region", "content", "path"}:
                assert operation.name in properties[field]["x-when"]["operation"], (name, operation.name, field)


def test_a_template_sends_by_its_connector() -> None:
    [template] = [one for one in TEMPLATES if one["state"]["metadata"]["name"] == "meeting-followup-agent"]
    block = convert(template, catalog=REGISTRY).document["blocks"]["f"]
    assert (block["type"], block["parent"]) == ("connector.gmail", "e")
    assert block["params"] == {
        "operation": "send",
        "to": "<loop.currentItem>",
        "subject": "<emailDrafter.content.subject>",
        "text": "<emailDrafter.content.body>",
        "connection": "gmail",
    }


def test_a_tool_of_a_service_is_an_operation_whose_open_fields_the_model_fills_in() -> None:
    asked = {"type": "slack_v2", "title": "Slack", "operation": "send", "params": {"manualChannel": "C1"}}
    odd = {"type": "exa", "title": "Exa", "operation": "search"}
    one = block("agent", "agent", messages=[{"role": "user", "content": "Hi"}], model="gpt-5", tools=[asked, odd])
    made = convert({"version": "1.0", "blocks": [one], "connections": [], "loops": {}}, catalog=REGISTRY)
    slack, exa = made.document["blocks"]["agent"]["params"]["tools"]
    assert slack["block"] == "connector.slack"
    assert slack["params"] == {
        "operation": "send_message", "channel": "C1", "text": "{{text}}", "connection": "slack"
    }  # fmt: skip
    assert slack["arguments"]["required"] == ["text"]
    assert exa["workflow"] == "Exa (not imported from Sim)"


def test_sftp_blocks() -> None:
    account = {"host": "sftp.example.com", "port": "2222", "username": "ada", "password": "secret word"}
    made, losses = of("sftp", operation="sftp_list", remotePath="/in", **account)
    at = {"connection": "sftp", "server": "sftp.example.com:2222"}
    assert (made["type"], made["params"]) == ("sftp", {"operation": "list", "path": "/in", **at})
    assert len(losses) == 1 and 'uses the connection "sftp"' in losses[0] and "secret word" not in str(made)
    write = {"operation": "sftp_create", "remotePath": "/out/", "fileName": "a.txt", "fileContent": "<start.Text>"}
    made, _ = of("sftp", **write, overwrite=False, **account)
    wanted = {"operation": "write", "path": "/out/a.txt", "content": "<start.Text>", "overwrite": False, **at}
    assert made["params"] == wanted
    made, losses = of("sftp", operation="sftp_download", remotePath="/in/a", host="<start.Text>", encoding="utf-8")
    assert made["params"] == {"operation": "read", "path": "/in/a", "connection": "sftp"}
    assert any("Its server is not imported" in one for one in losses)
    assert any("no content" in one for one in losses)
    assert of("sftp", operation="sftp_upload", remotePath="/out", files="<start.files>")[0]["type"] == "function"


def test_feeds_and_mailboxes_are_events() -> None:
    feed = block("rss", "rss", feedUrl="https://x.test/feed.xml", triggerMode=True)
    mail = block("imap", "imap", host="imap.x.test", port="993", mailbox=["INBOX"], triggerMode=True)
    read = block("f", "function", code="return <rss.item.title> + <imap.email.bodyText>")
    made = convert({"version": "1.0", "blocks": [feed, mail, read], "connections": [], "loops": {}}, catalog=REGISTRY)
    blocks = made.document["blocks"]
    assert (blocks["rss"]["type"], blocks["rss"]["params"]) == ("event.feed", {"url": "https://x.test/feed.xml"})
    assert blocks["imap"]["type"] == "event.mail"
    assert blocks["imap"]["params"] == {"server": "imap.x.test:993", "connection": "imap", "folder": "INBOX"}
    assert blocks["f"]["params"]["code"] == "return <rss.event.title> + <imap.event.text>"

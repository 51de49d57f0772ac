"""Workflows in the form of n8n's exports, imported and run against servers on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.imports.n8n import convert
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry
from executor.service.views import RunView
from tests.support.dev_model import dev_model
from tests.support.endpoints import Request, Server, answer, http
from tests.support.n8n_documents import Json, condition, fields, node, workflow
from tests.support.runs import engine_on, ran

REGISTRY = Registry.load(connectors())
START = node("Start", "manualTrigger")
PEOPLE = [{"name": "Ada", "age": 36}, {"name": "Bo", "age": 12}, {"name": "Cy", "age": 70}]


class Services:
    """Answers by path with JSON; what is sent to it is in `sent`."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.sent: list[tuple[str, str, Any]] = []

    def handle(self, request: Request) -> bytes:
        path = request.target.partition("?")[0].strip("/")
        body = json.loads(request.body) if request.body[:1] in b"{[" and request.body else request.body.decode()
        if request.method != "GET":
            self.sent.append((request.method, path, body))
        given = self.answers.get(path.rpartition("/")[2], {"ok": True})
        value = given.pop(0) if isinstance(given, list) and given and given[0] == "in turn" and given.pop(0) else given
        if isinstance(given, list) and value is not given:
            given.insert(0, "in turn")
        return answer(200, json.dumps(value).encode(), content_type="application/json")


async def run(
    tmp_path: Path, document: Json, server: Server, input: Any = None, env: Json | None = None, **models: str
) -> RunView:
    """Run what it becomes; connectors ask the server."""
    text = json.dumps(document).replace("SERVER", server.url)
    names = {"TOKEN": "t-1", "OPENAI_API_KEY": "k-1", **(env or {})}
    async with engine_on(
        tmp_path / "weft.db", *connectors(), env=names, models=models, allow_private=[server.place]
    ) as engine:
        ours = convert(json.loads(text), catalog=REGISTRY)
        for block in ours.document["blocks"].values():
            if block["type"].startswith(("connector.", "event.")):
                del block["params"]["connection"]
                block["params"] |= {"credential": "${TOKEN}", "base_url": server.url}
        return await ran(engine, ours.document, input=input or {})


def get(name: str, path: str, /, **params: Any) -> Json:
    return node(name, "httpRequest", 4.2, url=f"SERVER/{path}", **params)


def post(name: str, path: str, /, **values: Any) -> Json:
    rows = {"parameters": [{"name": key, "value": value} for key, value in values.items()]}
    return node(name, "httpRequest", 4.2, url=f"SERVER/{path}", method="POST", sendBody=True, bodyParameters=rows)


async def test_each_item_of_a_list_goes_its_way(tmp_path: Path) -> None:
    """A list is split into items; If sends each one on; what looks at all of them stands after."""
    nodes = [
        START, get("Get people", "people"),
        node("Adult", "if", 2, conditions=condition("={{ $json.age }}", "gte", 18, "number")),
        post("Invite", "invite", name="={{ $json.name }}", text="=Hi {{ $json.name.toUpperCase() }}!"),
        node("Child", "set", 3.4, **fields(who="={{ $('Get people').item.json.name }} ({{ $json.age }})")),
        node("All", "aggregate", aggregate="aggregateAllItemData"),
    ]  # fmt: skip
    services = Services(people=PEOPLE, invite={"sent": True})
    async with http(services.handle) as server:
        wires = "Start > Get people; Get people > Adult; Adult > Invite; Adult.1 > Child; Invite > All; Child > All"
        view = await run(tmp_path, workflow(nodes, wires), server)
    assert view.status == "succeeded", view.error
    invited = [body for _, path, body in services.sent if path == "invite"]
    assert sorted(body["text"] for body in invited) == ["Hi ADA!", "Hi CY!"]
    assert view.output["result"] == {"data": [{"sent": True}, {"sent": True}, {"who": "Bo (12)"}]}


@pytest.mark.parametrize(("answered", "count"), [({"name": "Ada"}, 1), ([{"name": "Ada"}, {"name": "Bo"}], 2), ([], 0)])
async def test_an_answer_may_be_one_object_or_a_list(tmp_path: Path, answered: Any, count: int) -> None:
    nodes = [START, get("Get", "who"), post("Send", "send", name="={{ $json.name }}")]
    services = Services(who=answered)
    async with http(services.handle) as server:
        view = await run(tmp_path, workflow(nodes, "Start > Get; Get > Send"), server)
    assert view.status == "succeeded", view.error
    assert len(services.sent) == count


async def test_code_reads_items_and_other_nodes(tmp_path: Path) -> None:
    script = """
    const config = $('Config').first().json;
    const out = [];
    for (const item of $input.all()) {
      out.push({ json: { line: `${config.greeting} ${item.json.name}`, first: $node["Config"].json.greeting } });
    }
    return out;"""
    nodes = [
        START, node("Config", "set", 3.4, **fields(greeting="Hello")), get("Get people", "people"),
        node("Lines", "code", 2, jsCode=script), node("Two", "limit", maxItems=2),
        node("Sorted", "sort", sortFieldsUi={"sortField": [{"fieldName": "line", "order": "descending"}]}),
    ]  # fmt: skip
    services = Services(people=PEOPLE)
    async with http(services.handle) as server:
        wires = "Start > Config; Config > Get people; Get people > Lines; Lines > Two; Two > Sorted"
        view = await run(tmp_path, workflow(nodes, wires), server)
    assert view.status == "succeeded", view.error
    assert [one["line"] for one in view.output["result"]] == ["Hello Bo", "Hello Ada"]
    assert view.output["result"][0]["first"] == "Hello"


async def test_loop_over_items_comes_back_and_is_done(tmp_path: Path) -> None:
    nodes = [
        START, get("Get people", "people"), node("Loop", "splitInBatches", 3, batchSize=2),
        post("Send", "send", name="={{ $json.name }}"), node("Pause", "wait", 1.1, amount=0),
        node("Count", "code", 2, jsCode="return [{ json: { count: $input.all().length } }];"),
        node("Report", "set", 3.4, **fields(text="=Sent {{ $json.count }}")),
    ]  # fmt: skip
    services = Services(people=PEOPLE, send={"ok": 1})
    async with http(services.handle) as server:
        wires = "Start > Get people; Get people > Loop; Loop.1 > Send; Send > Pause; Pause > Loop; "
        wires += "Loop > Count; Count > Report"
        view = await run(tmp_path, workflow(nodes, wires), server)
    assert view.status == "succeeded", view.error
    assert sorted(body["name"] for _, _, body in services.sent) == ["Ada", "Bo", "Cy"]
    assert view.output == {"text": "Sent 3"}


async def test_a_cycle_asks_until_it_is_ready(tmp_path: Path) -> None:
    nodes = [
        START, post("Begin", "begin"), node("Pause", "wait", 1.1, amount=0),
        get("Ask", "state", options={"response": {"response": {"responseFormat": "json", "fullResponse": True}}}),
        node("Ready", "if", 2.2, conditions=condition("={{ $json.body.state }}", "equals", "ready")),
        node("Done", "set", 3.4, **fields(result="={{ $json.body.result }}", job="={{ $('Begin').item.json.job }}")),
    ]  # fmt: skip
    states = ["in turn", {"state": "waiting"}, {"state": "waiting"}, {"state": "ready", "result": "42"}]
    services = Services(begin={"job": "j1"}, state=states)
    async with http(services.handle) as server:
        wires = "Start > Begin; Begin > Pause; Pause > Ask; Ask > Ready; Ready > Done; Ready.1 > Pause"
        view = await run(tmp_path, workflow(nodes, wires), server)
    assert view.status == "succeeded", view.error
    assert view.output == {"result": "42", "job": "j1"}
    assert states == ["in turn"]


async def test_branches_meet_and_lists_are_merged(tmp_path: Path) -> None:
    cities = [{"person": "Ada", "city": "Ulm"}, {"person": "Cy", "city": "Rom"}]
    rule = {"outputKey": "old", "conditions": condition("={{ $json.age }}", "gt", 60, "number")}
    nodes = [
        START, get("People", "people"), get("Cities", "cities"),
        node("Join", "merge", 3, mode="combine", advanced=True, joinMode="keepMatches",
             mergeByFields={"values": [{"field1": "name", "field2": "person"}]}),
        node("Kind", "switch", 3.2, rules={"values": [rule]}, options={"fallbackOutput": "extra"}),
        node("Old", "set", 3.4, **fields(text="={{ $json.name }} of {{ $json.city }} is old")),
        node("Young", "set", 3.4, **fields(text="={{ $json.name }} is young")),
        post("Post", "post", text="={{ $json.text }}"),
    ]  # fmt: skip
    services = Services(people=PEOPLE, cities=cities)
    async with http(services.handle) as server:
        wires = "Start > People; Start > Cities; People > Join; Cities > Join:1; Join > Kind; "
        wires += "Kind > Old; Kind.1 > Young; Old > Post; Young > Post"
        view = await run(tmp_path, workflow(nodes, wires), server)
    assert view.status == "succeeded", view.error
    assert sorted(body["text"] for _, _, body in services.sent) == ["Ada is young", "Cy of Rom is old"]


async def test_a_webhook_is_answered(tmp_path: Path) -> None:
    total = "$json.body.items.map((one) => one.price).reduce((a, b) => a + b, 0)"
    nodes = [
        node("Hook", "webhook", 2, httpMethod="POST", path="orders", responseMode="responseNode"),
        node("Total", "set", 3.4, includeOtherFields=True, **fields(total=f"={{{{ {total} }}}}")),
        node("Reply", "respondToWebhook", 1.1, respondWith="json",
             responseBody='={ "total": {{ $json.total }}, "for": "{{ $json.body.name }}" }'),
        post("Log", "log", total="={{ $('Total').item.json.total }}"),
    ]  # fmt: skip
    services = Services()
    async with http(services.handle) as server:
        sent = {
            "body": {"name": "Ada", "items": [{"price": 2}, {"price": 3}]},
            "headers": {},
            "query": {},
            "method": "POST",
        }
        view = await run(tmp_path, workflow(nodes, "Hook > Total; Total > Reply; Reply > Log"), server, sent)
    assert view.status == "succeeded", view.error
    assert view.output == {"total": 5, "for": "Ada"}
    assert services.sent == [("POST", "log", {"total": 5})]


async def test_dates_and_helpers_of_n8n(tmp_path: Path) -> None:
    values = {
        "day": "={{ DateTime.fromISO('2026-11-28T10:00:00Z').plus({ days: 3 }).toFormat('dd LLL yyyy') }}",
        "iso": "={{ $today.toISODate().length }}",
        "gap": "={{ DateTime.fromISO('2026-01-03').diff(DateTime.fromISO('2026-01-01'), 'days').days }}",
        "empty": "={{ [].isEmpty() }} {{ ['a', 'b'].last() }} {{ 'ada lovelace'.toTitleCase() }}",
        "chosen": "={{ $if(2 > 1, 'yes', 'no') }}",
    }
    services = Services()
    async with http(services.handle) as server:
        view = await run(
            tmp_path, workflow([START, node("Values", "set", 3.4, **fields(**values))], "Start > Values"), server
        )
    assert view.status == "succeeded", view.error
    assert view.output == {"day": "01 Dec 2026", "iso": 10, "gap": 2, "empty": "true b Ada Lovelace", "chosen": "yes"}


async def test_connectors_have_what_the_nodes_had(tmp_path: Path) -> None:
    """The sheet is read as objects, and a row of values is written."""
    sheet: Json = {
        "documentId": {"__rl": True, "mode": "list", "value": "sheet-1"},
        "sheetName": {"__rl": True, "mode": "list", "value": "gid=0", "cachedResultName": "People"},
    }
    channel = {"__rl": True, "mode": "list", "value": "C1"}
    columns = {"mappingMode": "defineBelow", "value": {"Name": "={{ $('Read').item.json.Name }}", "Note": "done"}}
    nodes = [
        START,
        node("Read", "googleSheets", 4.5, **sheet),
        node("Post", "slack", 2.2, select="channel", channelId=channel, text="=Hi {{ $json.Name }}"),
        node("Write", "googleSheets", 4.5, operation="append", **sheet, columns=columns),
    ]
    services = Services(People={"values": [["Name", "Age"], ["Ada", "36"], ["Bo", "12"]]})
    async with http(services.handle) as server:
        view = await run(tmp_path, workflow(nodes, "Start > Read; Read > Post; Post > Write"), server)
    assert view.status == "succeeded", view.error
    posted = [body for _, path, body in services.sent if path.endswith("postMessage")]
    assert sorted(body["text"] for body in posted) == ["Hi Ada", "Hi Bo"]
    assert {body["channel"] for body in posted} == {"C1"}
    rows = [body["values"] for _, path, body in services.sent if ":append" in path]
    assert sorted(rows) == [[["Ada", "done"]], [["Bo", "done"]]]


async def test_an_agent_keeps_its_model_memory_tools_and_parser(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")
    example = json.dumps({"city": "Ulm", "degrees": 20})
    nodes = [
        node("Chat", "chatTrigger", 1.1),
        node("Agent", "agent", 1.7, options={"systemMessage": "Be short."}, hasOutputParser=True),
        node("Model", "lmChatOpenAi", 1.2, model={"__rl": True, "value": "gpt-4o-mini"}, options={"temperature": 0.2}),
        node("Memory", "memoryBufferWindow", 1.3, contextWindowLength=4),
        node("forecast", "toolHttpRequest", 1.1, toolDescription="Forecasts the weather.", url="SERVER/weather/{city}"),
        node("Parser", "outputParserStructured", 1.2, jsonSchemaExample=example),
        node("Say", "set", 3.4, **fields(text="={{ $json.output.city }}: {{ $json.output.degrees }}")),
    ]  # fmt: skip
    rules = (
        {"when": {"tool": ""}, "calls": [{"name": "forecast", "arguments": {"city": "Ulm"}}]},
        {"when": {"tool": "forecast"}, "output": {"city": "Ulm", "degrees": 7}},
    )
    services = Services(Ulm={"degrees": 7})
    async with http(services.handle) as server, dev_model(*rules) as model:
        wires = "Chat > Agent; Agent > Say; Model ai_languageModel Agent; Memory ai_memory Agent; "
        wires += "forecast ai_tool Agent; Parser ai_outputParser Agent"
        given = {"message": "How is Ulm?", "conversation": "c-1", "turn": 1}
        view = await run(tmp_path, workflow(nodes, wires), server, given, OPENAI=model.url)
        calls = await model.calls()
    assert view.status == "succeeded", view.error
    assert view.output == {"text": "Ulm: 7"}
    assert [request.target for request in server.seen] == ["/weather/Ulm"]
    assert "How is Ulm?" in json.dumps(calls[0]) and "Be short." in json.dumps(calls[0])


async def test_what_has_no_counterpart_fails_when_it_is_reached(tmp_path: Path) -> None:
    nodes = [START, get("Get people", "people"), node("Odd", "spotify", resource="track"), post("Never", "never")]
    services = Services(people=PEOPLE)
    async with http(services.handle) as server:
        view = await run(tmp_path, workflow(nodes, "Start > Get people; Get people > Odd; Odd > Never"), server)
    assert view.status == "failed"
    assert 'The spotify node "Odd" was not imported from n8n.' in str(view.error)
    assert services.sent == []


async def test_files_and_pages(tmp_path: Path) -> None:
    """A file that a request loads is read and sent on; a page is read by selectors, and as Markdown."""
    page = '<h1>Tea</h1><a href="/green">Green</a><a href="/black">Black</a>'
    sent: list[bytes] = []

    def handle(request: Request) -> bytes:
        if request.method == "POST":
            sent.append(request.body)
            return answer(200, b'{"ok": true}', content_type="application/json")
        if request.target == "/list.csv":
            return answer(200, b"name;age\nAda;36\nBo;12\n", content_type="text/csv")
        return answer(200, page.encode(), content_type="text/html")

    links = {"key": "links", "cssSelector": "a", "returnValue": "attribute", "attribute": "href", "returnArray": True}
    as_file = {"response": {"response": {"responseFormat": "file"}}}
    part = {"parameterType": "formBinaryData", "name": "list", "inputDataFieldName": "data"}
    nodes = [
        START, get("List", "list.csv", options=as_file), node("Rows", "extractFromFile", 1),
        node("All", "aggregate", aggregate="aggregateAllItemData"), get("Page", "page"),
        node("Parts", "html", 1.2, operation="extractHtmlContent", extractionValues={"values": [
            {"key": "title", "cssSelector": "h1"}, links]}),
        node("Text", "markdown", 1, html="={{ $('Page').item.json.data }}", destinationKey="text"),
        node("Made", "convertToFile", 1.1, operation="toText", sourceProperty="text",
             options={"fileName": "={{ $json.title }}.md"}),
        node("Send", "httpRequest", 4.2, url="SERVER/send", method="POST", sendBody=True,
             contentType="multipart-form-data", bodyParameters={"parameters": [
                 part, {"name": "size", "value": "={{ $('List').item.binary.data.fileName }}"}]}),
    ]  # fmt: skip
    wires = "Start > List; List > Rows; Rows > All; List > Page; Page > Parts; Parts > Text; Text > Made; Made > Send"
    async with http(handle) as server:
        view = await run(tmp_path, workflow(nodes, wires), server)
    assert view.status == "succeeded", [(node.key, node.error) for node in view.nodes if node.error]
    outputs = {node.key.partition("[")[0].partition("/")[0]: node.output for node in view.nodes}
    assert outputs["all"]["result"] == {"data": [{"name": "Ada", "age": "36"}, {"name": "Bo", "age": "12"}]}
    assert b"# Tea" in sent[0] and b'filename="Tea.md"' in sent[0] and b"list.csv" in sent[0]


async def test_a_mail_has_its_fields(tmp_path: Path) -> None:
    parts = [
        {"mimeType": "text/plain", "body": {"data": "R3LDvG4_"}},
        {"mimeType": "text/html", "body": {"data": "PGI-"}},
    ]
    headers = [{"name": "Subject", "value": "Tea"}, {"name": "From", "value": "Ada <ada@example.org>"}]
    payload = {"mimeType": "multipart/alternative", "headers": headers, "parts": parts}
    mail = {"id": "m1", "internalDate": "1777622400000", "labelIds": ["INBOX"], "payload": payload}
    async with http(Services(m1=mail).handle) as server:
        view = await run(tmp_path, workflow([node("Mail", "gmailTrigger", 1.2)], ""), server, {"event": {"id": "m1"}})
    assert view.status == "succeeded", view.error
    made = view.output["result"]
    assert made["subject"] == made["Subject"] == "Tea"
    assert made["from"]["value"] == [{"name": "Ada", "address": "ada@example.org"}]
    assert (made["text"], made["html"], made["date"]) == ("Grün?", "<b>", "2026-05-01T08:00:00.000Z")


async def test_code_encodes_and_decodes(tmp_path: Path) -> None:
    code = """
    const b = Buffer.from('R3LDvG4', 'base64');
    return { text: b.toString(), hex: b.toString('hex'), size: b.length,
      back: Buffer.from('Gr\u00fcn').toString('base64') };
    """
    async with http(Services().handle) as server:
        view = await run(tmp_path, workflow([START, node("It", "code", 2, jsCode=code)], "Start > It"), server)
    assert view.output == {
        "result": {"text": "Gr\u00fcn", "hex": "4772c3bc6e", "size": 5, "back": "R3LDvG4="},
        "stdout": "",
    }

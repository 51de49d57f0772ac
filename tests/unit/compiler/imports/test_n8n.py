"""Small workflows of n8n, and what their import makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.imports import Imported, not_imported
from compiler.imports.n8n import convert, detect
from compiler.imports.n8n_items import is_one
from compiler.imports.n8n_text import split
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry
from tests.support.n8n_documents import Json, condition, fields, node, workflow

REGISTRY = Registry.load(connectors())
START = node("Start", "manualTrigger")


def imported(nodes: list[Json], wires: str) -> Imported:
    """The import, which compiles: only required fields may be open."""
    made = convert(workflow(nodes, wires), catalog=REGISTRY)
    found = compile_document(made.document, REGISTRY).diagnostics
    assert [one for one in found if one.severity == "error" and one.code != "required"] == []
    return made


def block(nodes: list[Json], wires: str, name: str) -> Json:
    made: Json = imported(nodes, wires).document["blocks"][name]
    return made


def edges(made: Imported) -> set[tuple[str, str, str]]:
    return {(edge["source"], edge.get("handle", "out"), edge["target"]) for edge in made.document["edges"]}


def only(kind: str, version: float = 1, /, **params: Any) -> Json:
    return block([START, node("It", kind, version, **params)], "Start > It", "it")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (workflow([START], ""), True),
        ({"nodes": [], "connections": {}}, True),
        ({"nodes": [{"name": "a"}], "connections": {}}, False),
        ({"nodes": [START]}, False),
        ({"format": "weft/1", "nodes": [], "connections": {}}, False),
        ({"blocks": [], "connections": []}, False),
    ],
)
def test_detect(document: Json, expected: bool) -> None:
    assert detect(document) == expected


def test_a_node_is_a_block_with_its_name_and_a_finding_points_to_it() -> None:
    made = imported([START, node("My node!", "noOp"), node("Odd", "spotify")], "Start > My node!; My node! > Odd")
    assert {key: one["name"] for key, one in made.document["blocks"].items()} == {
        "start": "Start", "my_node": "My node!", "odd": "Odd",
    }  # fmt: skip
    assert made.pointers["/blocks/odd"] == "/nodes/2"
    (lost,) = made.diagnostics
    assert (lost.code, lost.pointer, lost.block) == ("import_lossy", "/nodes/2", "odd")
    (found,) = not_imported(made.document)
    assert found.block == "odd" and "http block" in found.hint


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("={{ $json.a.b[0].c }}", "<start.a.b[0].c>"),
        ('={{ $json["First name"] }}', '<start["First name"]>'),
        ("={{ $('Start').item.json.x }}", "<start.x>"),
        ('={{ $("Start").first().json["x"] }}', "<start.x>"),
        ('={{ $node["Start"].json.x }}', "<start.x>"),
        ("={{ $input.first().json.x }}", "<start.x>"),
        ("={{ $env.BASE }}", "${BASE}"),
        ("=Hi {{ $json.name }}, {{ $json.name }}!", "Hi <start.name>, <start.name>!"),
        ("no expression {{ $json.x }}", "no expression {{ $json.x }}"),
        ("={{ $json.tags.length }}", "<it_values.result.v>"),
        ("={{ $json.name.trim() }}", "<it_values.result.v>"),
    ],
)
def test_a_path_is_a_reference_and_the_rest_is_computed_before(written: str, expected: str) -> None:
    nodes = [START, node("It", "set", 3.4, **fields(v=written))]
    made = imported(nodes, "Start > It").document["blocks"]
    assert made["it"]["params"] == {"value": {"v": expected}}
    assert ("it_values" in made) == ("it_values" in expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a {{ b }} c", [("a ", False), ("b", True), (" c", False)]),
        ("{{ {x: {y: 1}} }}", [("{x: {y: 1}}", True)]),
        ("{{ '}}' + x }}!", [("'}}' + x", True), ("!", False)]),
        ("{{ it's }} and {{ b }}", [("it's", True), (" and ", False), ("b", True)]),
        ("{{ open", [("{{ open", False)]),
        ("", [("", False)]),
    ],
)
def test_templates_are_split(text: str, expected: list[tuple[str, bool]]) -> None:
    assert list(split(text)) == expected


@pytest.mark.parametrize(
    ("rule", "cron"),
    [
        ({"field": "minutes", "minutesInterval": 10}, "*/10 * * * *"),
        ({"field": "hours", "hoursInterval": 2, "triggerAtMinute": 5}, "5 */2 * * *"),
        ({"triggerAtHour": 23, "triggerAtMinute": 59}, "59 23 * * *"),
        ({"field": "weeks", "triggerAtDay": [1, 3], "triggerAtHour": 7}, "0 7 * * 1,3"),
        ({"field": "months", "triggerAtDayOfMonth": 2}, "0 0 2 * *"),
        ({"field": "cronExpression", "expression": "0 30 9 * * 1"}, "30 9 * * 1"),
    ],
)
def test_times_are_a_cron_expression(rule: Json, cron: str) -> None:
    made = imported([node("At", "scheduleTrigger", 1.2, rule={"interval": [rule]})], "")
    assert made.document["blocks"]["at"]["params"] == {"cron": cron}
    old = imported(
        [node("At", "cron", 1, triggerTimes={"item": [{"mode": "everyX", "unit": "hours", "value": 3}]})], ""
    )
    assert old.document["blocks"]["at"]["params"] == {"cron": "0 */3 * * *"}


@pytest.mark.parametrize(
    ("conditions", "when"),
    [
        (condition("={{ $json.a }}", "equals", "x"), '<start.a> === "x"'),
        (condition("={{ $json.n }}", "gt", 3, "number"), "Number(<start.n>) > 3"),
        (condition("={{ $json.b }}", "true", "", "boolean"), "<start.b> === true"),
        (condition("={{ $json.a }}", "notEmpty"), "String(<start.a> ?? '') !== ''"),
        (condition("={{ $json.a }}", "exists"), "<start.a> != null"),
        (condition("={{ $json.l }}", "lengthGt", 2, "array"), "(<start.l> ?? []).length > 2"),
        ({"string": [{"value1": "={{$json.a}}", "operation": "contains", "value2": "x"}]},
         "String(<start.a> ?? '').includes(String(\"x\" ?? ''))"),
    ],
)  # fmt: skip
def test_conditions(conditions: Json, when: str) -> None:
    made = only("if", 2, conditions=conditions)
    assert made["params"]["cases"][0] == {"id": "true", "title": "true", "when": when}


def test_a_request_has_its_parts() -> None:
    made = only(
        "httpRequest", 4.2, url="=https://x.test/{{ $json.id }}", method="POST", sendBody=True, specifyBody="json",
        jsonBody='={ "name": "{{ $json.name }}" }', sendHeaders=True,
        headerParameters={"parameters": [{"name": "X-A", "value": "1"}]}, options={"timeout": 5000},
        authentication="predefinedCredentialType", nodeCredentialType="notionApi",
    )  # fmt: skip
    assert made["params"] == {
        "url": "https://x.test/<start.id>", "method": "POST", "body": {"name": "<start.name>"},
        "headers": {"X-A": "1"}, "connection": "notion", "timeout_s": 5,
    }  # fmt: skip


def test_a_list_is_followed_by_a_parallel_and_what_sees_all_stands_outside() -> None:
    nodes = [
        START, node("Get", "httpRequest", 4.2, url="https://x.test"),
        node("Name", "set", 3.4, **fields(n="={{ $json.name }}")),
        node("All", "aggregate", aggregate="aggregateAllItemData"),
    ]  # fmt: skip
    made = imported(nodes, "Start > Get; Get > Name; Name > All")
    blocks = made.document["blocks"]
    (each,) = (key for key, one in blocks.items() if one["type"] == "parallel")
    assert blocks["name"]["parent"] == each and "parent" not in blocks["all"]
    assert blocks["name"]["params"] == {"value": {"n": f"<{each}.item.name>"}}
    assert (each, "out", "all") in edges(made)


def test_disabled_nodes_are_passed_over() -> None:
    off = node("Off", "noOp", 1, {"disabled": True})
    made = imported([START, off, node("End", "set", 3.4, **fields(x="={{ $json.x }}"))], "Start > Off; Off > End")
    assert made.document["blocks"]["off"]["enabled"] is False
    assert made.document["blocks"]["end"]["params"] == {"value": {"x": "<start.x>"}}
    assert edges(made) == {("start", "out", "end")}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return [{ json: { a: 1, b: [1, 2] } }];", True),
        ("const x = 1;\nreturn { a: x };", True),
        ("return [{ json: { a: 1 } }, { json: { a: 2 } }];", False),
        ("return items;", False),
        ("return items.map((one) => ({ json: one }));", False),
        ("if (x) { return []; }\nreturn [{ json: {} }];", False),
        ("return [...items];", False),
    ],
)
def test_code_that_certainly_returns_one_item(code: str, expected: bool) -> None:
    assert is_one(code) == expected


def test_a_name_that_is_a_tag_in_a_text_is_another_one() -> None:
    nodes = [
        START,
        node("HTML", "noOp"),
        node("Mail", "emailSend", 2.1, toEmail="a@x.test", subject="s", html="=<html>{{ $json.a }}</html>"),
    ]
    made = imported(nodes, "Start > HTML; HTML > Mail").document["blocks"]
    assert made["html_node"]["name"] == "HTML node"
    assert made["mail"]["params"]["body"] == "<html><html_node.a></html>"


def test_settings_of_retries_and_errors() -> None:
    raw = {"retryOnFail": True, "maxTries": 4, "waitBetweenTries": 500, "onError": "continueErrorOutput"}
    nodes = [START, node("Call", "httpRequest", 4.2, raw, url="https://x.test", method="POST"), node("Failed", "noOp")]
    made = imported(nodes, "Start > Call; Call.1 > Failed")
    assert made.document["blocks"]["call"]["policy"] == {
        "retry": {"max_attempts": 4, "backoff": "fixed", "initial_ms": 500}
    }
    assert ("call", "error", "failed") in edges(made)


def test_tools_stay_where_they_are() -> None:
    pytest.importorskip("pydantic_ai")
    asked = "={{ $fromAI('to', 'Who gets it', 'string') }}"
    nodes = [
        node("Chat", "chatTrigger", 1.1), node("Agent", "agent", 1.7, options={}),
        node("Model", "lmChatOpenAi", 1.2, model={"__rl": True, "value": "gpt-5-mini"}),
        node("Mail", "gmailTool", 2.1, sendTo=asked, subject="Hi", message="=Hello {{ $fromAI('text') }}"),
        node("Find", "toolSerpApi"), node("Docs", "toolVectorStore", description="The manual"),
        node("Store", "vectorStoreQdrant", 1, qdrantCollection={"__rl": True, "value": "manual"}),
        node("Shop", "toolWorkflow", 2, workflowId={"__rl": True, "value": "w1", "cachedResultName": "Shop"}),
    ]  # fmt: skip
    wires = "Model ai_languageModel Agent; Mail ai_tool Agent; Find ai_tool Agent; Shop ai_tool Agent; Chat > Agent"
    made = imported(nodes, f"{wires}; Docs ai_tool Agent; Store ai_vectorStore Docs")
    params = made.document["blocks"]["agent"]["params"]
    assert (params["model"], params["prompt"]) == ("openai:gpt-5-mini", "<chat.message>")
    mail, find, shop, docs = params["tools"]
    assert (docs["block"], docs["params"]) == ("knowledge", {"collection": "manual"})
    assert mail["block"] == "connector.gmail"
    assert (mail["params"]["to"], mail["params"]["text"]) == ("{{to}}", "Hello {{text}}")
    assert mail["arguments"]["properties"]["to"] == {"type": "string", "description": "Who gets it"}
    assert find["workflow"] == "Find (not imported from n8n)"
    assert shop["workflow"] == "Shop"
    assert [one.pointer for one in not_imported(made.document)] == ["/blocks/agent/params/tools/1"]


def test_names_of_an_export_cannot_end_what_they_stand_in() -> None:
    odd = 'a"; DROP TABLE b; --'
    where = {"values": [{"column": odd, "value": 1}]}
    made = only("postgres", 2.5, operation="select", schema="public", table=odd, where=where)
    quoted = '"a""; DROP TABLE b; --"'
    assert made["params"]["query"] == f'SELECT * FROM "public".{quoted} WHERE {quoted} = :a_DROP_TABLE_b LIMIT 50'
    odd = "a`; DROP TABLE b; --"
    made = only("mySql", 2.4, operation="insert", table=odd, columns={"value": {odd: 1}})
    assert (
        made["params"]["query"]
        == "INSERT INTO `a``; DROP TABLE b; --` (`a``; DROP TABLE b; --`) VALUES (:a_DROP_TABLE_b)"
    )


def test_an_expression_in_a_query_is_a_parameter() -> None:
    query = "SELECT * FROM t WHERE name = '{{ $json.name }}' AND n > {{ $json.n }}"
    made = only("postgres", 2.5, operation="executeQuery", query=f"={query}")
    assert made["params"] == {
        "database": "${POSTGRES_URL}", "query": "SELECT * FROM t WHERE name = :name AND n > :n", "read_only": True,
        "max_rows": 10_000, "parameters": {"name": "<start.name>", "n": "<start.n>"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("params", "command"),
    [
        ({}, ["INFO"]),
        ({"operation": "delete", "key": "=a:{{ $json.id }}"}, ["DEL", "a:<start.id>"]),
        ({"operation": "get", "key": "a", "keyType": "string"}, ["GET", "a"]),
        ({"operation": "get", "key": "a", "keyType": "hash"}, ["HGETALL", "a"]),
        ({"operation": "get", "key": "a", "keyType": "list"}, ["LRANGE", "a", 0, -1]),
        ({"operation": "set", "key": "a", "value": "={{ $json.v }}", "expire": True, "ttl": 5},
         ["SET", "a", "<start.v>", "EX", 5]),
        ({"operation": "incr", "key": "n"}, ["INCR", "n"]),
        ({"operation": "keys", "keyPattern": "a*"}, ["KEYS", "a*"]),
        ({"operation": "push", "list": "l", "messageData": "x", "tail": True}, ["RPUSH", "l", "x"]),
        ({"operation": "pop", "list": "l"}, ["LPOP", "l"]),
        ({"operation": "publish", "channel": "c", "messageData": "x"}, ["PUBLISH", "c", "x"]),
        ({"operation": "llen", "list": "l"}, ["LLEN", "l"]),
    ],
)  # fmt: skip
def test_the_redis_node_is_a_command(params: Json, command: list[Any]) -> None:
    made = only("redis", **params)
    assert made["type"] == "redis" and made["params"]["server"] == "${REDIS_URL}"
    assert [made["params"]["command"], *made["params"].get("arguments", [])] == command


def test_what_the_redis_node_does_with_more_commands() -> None:
    counted = only("redis", operation="incr", key="n", expire=True, ttl=9)["params"]
    assert (counted["command"], counted["arguments"][1:]) == ("EVAL", [1, "n", 9])
    put = imported(
        [START, node("It", "redis", 1, operation="set", keyType="hash", key="h", value='{"a": 1}')], "Start > It"
    )
    assert put.document["blocks"]["it"]["params"]["arguments"] == "<it_values.result.arguments>"
    assert "Object.entries(made).flat()" in put.document["blocks"]["it_values"]["params"]["code"]
    read = [node("Get", "redis", 1, operation="get", key="k", keyType="string", propertyName="a.b"),
            node("Use", "set", 3.4, **fields(x="={{ $json.a.b }}"))]  # fmt: skip
    assert block([START, *read], "Start > Get; Get > Use", "use")["params"]["value"] == {"x": "<get.result>"}
    assert only("redis", operation="set", key="l", keyType="list", value="[1]")["type"] == "function"
    assert only("redisTrigger")["type"] != "redis"


def test_what_cannot_be_translated_is_a_finding() -> None:
    nodes = [START, node("It", "set", 3.4, **fields(a="={{ $binary.file }}", b="={{ $('Gone').item.json.x }}"))]
    found = [one.message for one in imported(nodes, "Start > It").diagnostics]
    assert any("$binary" in one for one in found) and any('"Gone"' in one for one in found)


def test_parts_that_cannot_be_read_are_left_out() -> None:
    odd = {
        "nodes": [{"type": "n8n-nodes-base.set", "parameters": "no"}, {"type": "x"}],
        "connections": {"gone": {"main": [[None, {"node": 3}]]}, "set": 4},
    }
    assert convert(odd, catalog=REGISTRY).document["format"] == "weft/1"


def test_triggers_that_poll_are_events() -> None:
    feed = node("Feed", "rssFeedReadTrigger", 1, feedUrl="https://x.test/feed.xml")
    made = imported([feed, node("It", "set", 3.4, **fields(a="={{ $json.title }} {{ $json.pubDate }}"))], "Feed > It")
    blocks = made.document["blocks"]
    assert (blocks["feed"]["type"], blocks["feed"]["params"]) == ("event.feed", {"url": "https://x.test/feed.xml"})
    assert blocks["it"]["params"] == {"value": {"a": '<feed.event.title ?? ""> <feed.event.published ?? "">'}}
    bot = imported([node("Bot", "telegramTrigger", 1.1, updates=["message"])], "").document["blocks"]["bot"]
    assert (bot["type"], bot["params"]["event"]) == ("event.telegram", "update")


def test_fields_below_a_field_that_is_a_text() -> None:
    made = only("set", 3.4, **fields(**{"a": "x", "a.b": "y"}))
    assert made["params"] == {"value": {"a": {"b": "y"}}}


def test_variables_of_code_are_declared() -> None:
    code = (
        "for (item of items) {\n  color = item.json.a == 1 ? 'red' : 'blue';\n  let x = 1;\n  x = 2;\n}\nreturn items;"
    )
    made = only("function", 1, functionCode=code)["params"]["code"]
    assert "let color, item;" in made or "let item, color;" in made


def test_sftp_and_not_ftp() -> None:
    account: Any = {"raw": {"credentials": {"sftp": {"id": "1", "name": "Bank files"}}}, "protocol": "sftp"}
    makes: Any = {"createDirectories": True}
    nodes = [
        START, node("List", "ftp", 1, operation="list", path="/in", recursive=True, **account),
        node("Get", "ftp", 1, path="={{ $json.path }}", **account),
        node("Put", "ftp", 1, operation="upload", path="/out/{{ 1 }}.csv", **account),
        node("Say", "ftp", 1, operation="upload", path="/a", binaryData=False, fileContent="hi", **account),
        node("Move", "ftp", 1, operation="rename", oldPath="/a", newPath="/b", options=makes, **account),
        node("Drop", "ftp", 1, operation="delete", path="/b", **account), node("Old", "ftp", 1, path="/x"),
    ]  # fmt: skip
    made = imported(nodes, "Start > List; List > Get; Get > Put; Put > Say; Say > Move; Move > Drop; Drop > Old")
    params = {name: one["params"] for name, one in made.document["blocks"].items() if one["type"] == "sftp"}
    assert all(one.pop("connection") == "bank_files" for one in params.values())
    assert params["list"] == {"operation": "list", "path": "/in"}
    assert params["get"]["operation"] == "read" and params["put"]["content"] == "<get.file>"
    assert params["put"]["make_folders"] is True and params["say"]["content"] == "hi"
    assert params["move"] == {"operation": "move", "path": "/a", "to": "/b", "make_folders": True}
    assert params["drop"] == {"operation": "delete", "path": "/b"}
    assert made.document["blocks"]["old"]["type"] == "function"
    text = str(made.diagnostics)
    assert "for one folder here" in text and "Its server and account are not imported" in text


def test_a_condition_with_helpers_is_computed_before() -> None:
    nodes = [
        START,
        node(
            "Old",
            "if",
            2,
            conditions=condition("={{ $json.at }}", "before", "={{ $now.minus(1, 'days') }}", "dateTime"),
        ),
    ]
    made = imported(nodes, "Start > Old").document["blocks"]
    assert made["old"]["params"]["cases"][0]["when"] == "<old_values.result.is_true>"
    assert "class DateTime" in made["old_values"]["params"]["code"]


def test_a_field_that_a_service_may_not_have_is_null() -> None:
    nodes = [
        node("Bot", "telegramTrigger", 1.1),
        node("It", "set", 3.4, **fields(a="={{ $json.message.document.id }}", b="=Hi {{ $json.message.text }}")),
    ]
    made = imported(nodes, "Bot > It").document["blocks"]["it"]["params"]["value"]
    assert made == {"a": "<bot.event.message.document.id ?? null>", "b": 'Hi <bot.event.message.text ?? "">'}


def test_blocks_that_a_table_makes_run_in_turn() -> None:
    nodes = [
        node("Bot", "telegramTrigger", 1.1), node("Voice", "telegram", 1.2, resource="file", fileId="={{ $json.id }}"),
        node("Words", "openAi", 1.8, resource="audio", operation="transcribe"),
        node("Row", "googleSheets", 4.5, operation="appendOrUpdate", documentId="d1", sheetName="Log",
             columns={"mappingMode": "defineBelow", "matchingColumns": ["id"], "value": {"id": "={{ $json.text }}"}}),
    ]  # fmt: skip
    nodes[2]["type"] = "@n8n/n8n-nodes-langchain.openAi"
    made = imported(nodes, "Bot > Voice; Voice > Words; Words > Row").document
    blocks = made["blocks"]
    assert blocks["voice"]["params"]["url"].endswith('/<voice_step_1.body.result.file_path ?? "">')
    assert blocks["words"]["params"]["body"]["file"] == "<voice.body>"
    assert blocks["row"]["params"]["range"] == "<row_row.result.range>"
    ways = {(one["source"], one["target"]) for one in made["edges"]}
    assert {("bot", "voice_step_1"), ("voice_step_1", "voice"), ("voice", "words"), ("words", "row_rows"),
            ("row_rows", "row_row"), ("row_row", "row")} <= ways  # fmt: skip


def test_a_file_that_no_node_makes_is_a_finding() -> None:
    nodes = [START, node("Read", "extractFromFile", 1, operation="pdf", binaryPropertyName="cv")]
    found = imported(nodes, "Start > Read").diagnostics
    assert any('the file "cv", which no node before it makes' in one.message for one in found)


def test_a_vector_store_becomes_a_collection() -> None:
    as_file = {"response": {"response": {"responseFormat": "file"}}}
    nodes = [START, node("Page", "httpRequest", 4.2, url="https://x.test", options=as_file),
             node("Keep", "vectorStoreInMemory", 1, mode="insert", memoryKey="My docs"),
             node("Loader", "documentDefaultDataLoader", 1, dataType="binary")]  # fmt: skip
    blocks = imported(nodes, "Start > Page; Page > Keep; Loader ai_document Keep").document["blocks"]
    assert blocks["keep"]["params"] == {
        "collection": "my_docs", "operation": "add", "name": "<page.body.name>", "content": "<page.body>"
    }  # fmt: skip


def test_a_loop_in_a_loop_is_read() -> None:
    nodes = [START, *(node(name, "noOp") for name in "ABCDE")]
    made = imported(nodes, "Start > A; A > B; B > C; C > A; C > B; C > D; D > E; E > D")
    assert made.document["format"] == "weft/1"


def test_a_body_of_a_tool_keeps_what_the_model_fills_in() -> None:
    body = '={"name": "{{ $fromAI(\'name\') }}", "by": "{{ $json.who }}", "at": "{{ $now.year }}"}'
    nodes = [
        START, node("Agent", "agent", 1.7, text="x", promptType="define"),
        node("Add", "httpRequestTool", 4.2, url="={{ `https://x.test/${$fromAI('id','','string')}` }}", method="POST",
             sendBody=True, specifyBody="json", jsonBody=body),
    ]  # fmt: skip
    made = imported(nodes, "Start > Agent; Add ai_tool Agent").document["blocks"]
    params = made["agent"]["params"]["tools"][0]["params"]
    assert params["url"] == "https://x.test/{{id}}"
    assert params["body"] == {"name": "{{name}}", "by": "<start.who>", "at": "<agent_values.result.at>"}

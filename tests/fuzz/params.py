"""Params that are right, for every block type of the catalogue: `PARAMS[type](scene)` gives them and the handles to go
on by.

A new param of a block type that is not generated here fails `test_the_generator_knows_every_part` of test_documents.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from executor.blocks.types.agent.block import AgentBlock
from executor.blocks.types.file_reading import READ_AS
from executor.blocks.types.python import Python
from executor.kernel.handler.base import StepContext

Document = dict[str, Any]
Draw = Any

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>${}"), max_size=12)
TYPES = ("any", "string", "number", "integer", "boolean", "object", "array")
SCHEMAS: list[Document] = [
    {},
    {"type": "object", "properties": {"x": {"type": ["string", "null"], "pattern": "^[a-z]*$", "maxLength": 9}}},
    {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"enum": [1, "two", None]}}},
    {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}, {"not": {"required": ["x"]}}]},
    {"type": ["object", "null"], "additionalProperties": {"format": "date"}, "required": []},
]  # fmt: skip
FORMS: list[Document] = [
    {"properties": {"note": {"type": "string", "default": "-"}}},
    {"type": "object", "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}}, "required": ["n"]},
]


def twice(x: Any = None) -> list[Any]:
    return [x, x]


async def refuse(ctx: StepContext, x: Any = None) -> None:
    raise ValueError(f"{ctx.key}: not {x!r}")


FUNCTIONS: dict[str, Callable[..., Any]] = {"twice": twice, "refuse": refuse}
_python = Python(FUNCTIONS)
BLOCKS = (_python, AgentBlock(_python))  # what the registry of these tests has besides the installed ones


@lru_cache(maxsize=1024)
def _numbers(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most - 1)


def pick(draw: Draw, options: Sequence[Any]) -> Any:
    """Like `sampled_from`, which looks through its options each time it is made. The first one is the simplest."""
    return options[draw(_numbers(len(options)))]


@dataclass(frozen=True)
class Scene:
    """Where a block stands: `before` holds what references may begin with, `around` the kinds of containers."""

    draw: Draw
    before: tuple[str, ...]
    around: tuple[str, ...] = ()

    def below(self, most: int) -> int:
        return int(self.draw(_numbers(most)))

    def pick(self, *options: Any) -> Any:
        return pick(self.draw, options)

    def chance(self, of_twelve: int) -> bool:
        return self.below(12) >= 12 - of_twelve

    def some(self, **options: tuple[Any, ...]) -> Document:
        """Half of the options, each with one of its values. `from_` is written `from`."""
        mask = self.below(1 << len(options))
        chosen = [option for n, option in enumerate(options.items()) if mask >> n & 1]
        return {name.rstrip("_"): self.pick(*values) for name, values in chosen}

    def text(self) -> str:
        return str(self.draw(texts))

    def head(self) -> str:
        return str(self.pick(*self.before))

    def value(self) -> Any:
        head = self.head()
        scopes = [f"<{kind}.{field}>" for kind in self.around for field in ("index", "item")]
        return self.pick(
            1, None, True, "plain", f"<{head}>", f"a <{head}> b", {"x": [f"<{head}>"]}, f'<{head}.x[0].y ?? "none">',
            "<workflow.seen>", "<variable.list[0]>", {"$ref": "$.list[0]"}, "<input.n>", "${KEY}", "1 < 2 > 0", *scopes
        )  # fmt: skip

    def expression(self) -> str:
        head = self.head()
        return str(
            self.pick(
                "true", f"<{head}> !== null", f"'<{head}>' === 'x'", f"`${{<{head}>}}`.length > 2",
                "<workflow.seen> < 3", "${KEY} === 'x'",
                f"JSON.stringify(<{head}> ?? null).length < 9", "<input.n> > 1",
            )
        )  # fmt: skip


Handles = list[str | None]
Made = tuple[Document, Handles]


def start(s: Scene) -> Made:
    if not s.chance(6):
        return {}, [None]
    fields = [
        {"name": name}
        | s.some(type=TYPES, title=("Label",), description=("d",), default=(1, "1", None), required=(False, True))
        for name in ("n", "größe")
    ]
    if s.chance(3):
        fields.append({"name": "scan", "type": "file"})
    return {"fields": fields}, [None]


def schedule(s: Scene) -> Made:
    crons = ("0 9 * * MON-FRI", "*/15 * * * *", "30 2 29 2 *", "0 0 L * *", "0 0 1 1 *", "5 4 * * SUN#2")
    optional = s.some(
        tz=("UTC", "Europe/Berlin", "Australia/Lord_Howe"),
        input=({}, {"n": 3}, {"n": 1, "text": "<start>"}),
        overlap=("skip", "queue", "allow"),
        catch_up=("one", "none", "all"),
        enabled=(True, False),
    )
    return {"cron": s.pick(*crons)} | optional, [None]


def webhook(s: Scene) -> Made:
    params = s.some(
        auth=("hmac", "github", "token", "none"),
        respond=("immediate", "run"),
        timeout_s=(0.5, 60),
        body_schema=tuple(SCHEMAS),
        headers=([], ["X-Order", "content-type"]),
        enabled=(True, False),
    )
    if params.get("auth") != "none" and s.chance(3):
        params["secret_env"] = "HOOK_SECRET"
    return params, [None]


def form_trigger(s: Scene) -> Made:
    optional = s.some(
        title=("Order",),
        text=("What do you need?",),
        fields=tuple(FORMS),
        submit=("Order",),
        done=("We answer by mail.",),
        wait_s=(0, 2.5),
        enabled=(True, False),
    )
    return optional, [None]


def chat_trigger(s: Scene) -> Made:
    return s.some(title=("Ask us",), text=("What is it about?",), placeholder=("Ask",), enabled=(True, False)), [None]


def set_(s: Scene) -> Made:
    return ({"first": [s.value(), s.value()]} if s.chance(4) else {"value": s.value()}), [None]


def variables(s: Scene) -> Made:
    if s.chance(3):
        return {"assign": {"seen": s.value()}}, [None]
    op = s.pick("set", "set", "merge", "set", "del", "append", "increment", "set")
    name = {"append": "list", "increment": "seen", "merge": "box"}.get(op, s.pick("seen", "$.box.x", "made up"))
    value = {"increment": 2, "merge": {"x": 1}}.get(op, s.value())
    one = {"name": name, "op": op} | ({} if op == "del" else {"value": value})
    if op == "set":
        one["type"] = s.pick(*TYPES)
    return {"assign": [one, {"name": "list", "op": "append", "type": s.pick(*TYPES), "value": s.value()}]}, [None]


def function(s: Scene) -> Made:
    code = s.pick(
        f"const x = {s.expression()};\nreturn {{x}}",
        "console.log('hello'); return await Promise.resolve([1, 2])",
        "throw new Error('no')",
        f"return {{error: {s.expression()}}}",
    )
    more = s.some(timeout_s=(0.5, 5), files=("value", "text", "base64"))
    language = s.pick(None, "javascript", "python")
    if language == "python":
        code = s.pick("return [n for n in range(3)]", "print('hello')", "raise ValueError('no')")
    return {"code": code} | more | ({} if language is None else {"language": language}), [None]


def python(s: Scene) -> Made:
    """Only where functions are registered: see FUNCTIONS."""
    return {"function": s.pick(*FUNCTIONS)} | s.some(arguments=({}, {"x": s.value()}, {"y": 1})), [None]


def condition(s: Scene) -> Made:
    cases = [{"id": "yes", "when": s.expression()} | s.some(title=("If so",)), {"id": "no"} | s.some(when=(None, ""))]
    return {"cases": cases} | s.some(carry=({}, s.value())), ["yes", "no"]


def router(s: Scene) -> Made:
    rule = s.pick({"equals": s.pick(1, "x", None)}, {"when": s.expression()}, {})
    routes = [{"id": "one"} | rule | s.some(title=("First",)), {"id": "rest"}]
    value = s.value()
    value = 1 if value is None else value  # it is required: "rest" is compared with it
    return {"value": value, "routes": routes, "default": s.pick("rest", "else")}, ["one", "rest"]


def _of_model(s: Scene) -> Document:
    optional = s.some(
        api_key=("${KEY}",), connection=("crm", ""), temperature=(0, 1.5), max_tokens=(5,), timeout_s=(0.5, 5)
    )
    optional |= s.some(files=(f"<{s.head()}>", [f"<{s.head()}>"]))
    return {"model": s.pick("dev:m", "openai:m", f"<{s.head()}>"), **optional}


def agent(s: Scene) -> Made:
    fetch = s.pick(
        {"name": "fetch", "block": "http", "params": {"url": "http://127.0.0.1:9/{{id}}"}},
        {"name": "fetch", "block": "email", "params": {"to": "a@example.org", "subject": "about {{id}}"}},
    )
    about = s.some(
        description=("d", s.text()),
        arguments=({"properties": {"id": {"type": "integer"}}},),
        max_calls=(1, 5),
        agents=(["first"], ["other", "first"]),
        on_lost=("ask", "retry"),
        by=(["chat"], ["role:approver"]),
    )
    plain = s.pick("always", "never", "write")
    asking = s.pick({}, {"approve": plain}, {"approve": "if", "approve_if": s.expression()})
    run = {"name": "run", "workflow": s.pick("other", f"<{s.head()}>")} | s.some(version=(1,))
    own = {"name": "own", "function": s.pick(*FUNCTIONS)}
    headers = {"headers": s.pick({"Authorization": "Bearer ${KEY}"}, {"X-Of": f"<{s.head()}>"})}
    shop = {
        "name": "shop",
        "mcp": {"url": "http://127.0.0.1:9/mcp", "tools": s.pick([], ["find"]), "timeout_s": 5}
        | headers
        | s.some(connection=("crm",)),
    }
    optional = s.some(
        system=("Be kind.", s.text()),
        messages=([{"role": "user", "content": "x"}], f"<{s.head()}>"),
        tools=([fetch | about | asking], [fetch, run | about | asking], [fetch, shop | asking], [own | asking]),
        output_schema=({"properties": {"a": {"type": "string"}}},),
        output_mode=("auto", "native", "tool", "prompted"),
        handoffs=(
            [{"name": "other", "description": "d", "model": "dev:n", "system": "Be quick.", "connection": "crm"}],
        ),
        max_rounds=(1, 3),
        max_tool_calls=(0, 3),
        budget_tokens=(10,),
        budget_usd=(0.5,),
        memory=("ada", 7, f"<{s.head()}>"),
        memory_scope=("team",),
        memory_messages=(2,),
        memory_tokens=(100,),
    )
    if "handoffs" not in optional and "tools" in optional:  # `agents` are names of these
        optional["tools"] = [{k: v for k, v in tool.items() if k != "agents"} for tool in optional["tools"]]
    return {**_of_model(s), **optional, "prompt": s.pick("x", f"<{s.head()}>")}, [None]


def model_router(s: Scene) -> Made:
    optional = s.some(context=(s.value(), "x"), instructions=("Be quick.", s.text()))
    routes = [{"id": "one"} | s.some(title=("First",), description=("d", f"<{s.head()}>")), {"id": "two"}]
    return {**_of_model(s), **optional, "routes": routes}, ["one", "two"]


def evaluator(s: Scene) -> Made:
    optional = s.some(content=(s.value(), "x"), instructions=("Be quick.", s.text()))
    metrics = [{"name": "a"} | s.some(description=("d",), min=(-1, 0), max=(1.5, 3)), {"name": "b"}]
    return {**_of_model(s), **optional, "metrics": metrics}, [None]


def guardrail(s: Scene) -> Made:
    check = s.pick("json", "schema", "regex", "length", "pii", "model")
    by_check: dict[str, Document] = {
        "json": {},
        "schema": {"schema": {"type": "object"}},
        "regex": {"pattern": "a+"} | s.some(found_passes=(True, False)),
        "length": {"max": 3} | s.some(min=(1,)),
        "pii": s.some(pii=(["email"], ["iban", "phone", "credit_card", "ip_address", "us_ssn"])),
        "model": {"rule": s.pick("Be kind.", f"<{s.head()}>"), **_of_model(s)},
    }
    return {"check": check, **by_check[str(check)]} | s.some(input=(s.value(), "a")), ["pass", "fail"]


def http(s: Scene) -> Made:
    method = s.pick("GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    optional = s.some(
        headers=({"X-A": "${KEY}"}, {"X-A": f"<{s.head()}>"}, {"X-N": 1, "X-Null": None}),
        query=({"q": s.value()}, {"q": ["a", 1]}),
        body=(s.value(), {"deep": [s.value()]}),
        connection=("crm", ""),
        idempotency_header=("Idempotency-Key",),
        timeout_s=(0.5, 5),
        fail_on_status=(True, False),
        save_file=(True, False),
    )
    url = f"https://{s.pick('up', 'down', 'strange')}.example.org/{s.pick('', f'<{s.head()}>')}"
    return {"url": url} | ({"method": method} if method != "GET" or s.chance(6) else {}) | optional, [None]


def email(s: Scene) -> Made:
    optional = s.some(cc=("c@example.org", ["c@example.org"]), from_=("weft@example.org",), body=(s.value(), "text"))
    optional |= s.some(attachments=(f"<{s.head()}>", [f"<{s.head()}>"]))
    optional |= s.pick({}, {"connection": ""}, {"connection": "crm"}, {"connection": "crm", "server": "127.0.0.1:9"})
    to = s.pick("a@example.org", "a@example.org, Bo <b@example.org>", ["a@example.org"], f"<{s.head()}>")
    return {"to": to, "subject": s.pick("s", f"of <{s.head()}>")} | optional, [None]


def file(s: Scene) -> Made:
    if s.pick(False, True):
        way = {"read_as": s.pick(*READ_AS)}
        given = {"select": {"title": "h1"}} if way["read_as"] == "fields" else {}
        given = given | s.some(sheet=("Prices",))
        return {"operation": "read", "content": s.pick("<h1>Tea</h1>", f"<{s.head()}>")} | way | given, [None]
    content = s.pick(
        {"format": s.pick("csv", "excel"), "content": [{"a": s.value()}]}, {"content": s.value()}, {"content": "text"}
    )
    if "format" not in content:
        content = content | s.some(format=("text", "base64"))
    name = {"name": s.pick("a.csv", f"<{s.head()}>.txt")} | s.some(operation=("make",))
    return name | content | s.some(media_type=("text/plain",)), [None]


def sql(s: Scene) -> Made:
    optional = s.some(
        parameters=({"a": s.value()}, {"a": f"<{s.head()}>"}),
        read_only=(True, False),
        max_rows=(1, 10_000),
        timeout_s=(1,),
    )
    connected = s.pick(
        {}, {}, {"database": s.pick("postgresql://127.0.0.1:9/d", "mysql://127.0.0.1:9/d"), "connection": "crm"}
    )
    query = s.pick("SELECT 1", "SELECT :a") if "parameters" in optional else "SELECT 1"
    return {"database": s.pick("shop.db", "${SHOP}"), "query": query} | optional | connected, [None]


def redis(s: Scene) -> Made:
    command = s.pick({"command": "GET", "arguments": ["k"]}, {"command": "HSET", "arguments": ["k", "f", s.value()]})
    connected = s.pick({"server": "${SHOP}"}, {"server": "redis://127.0.0.1:9/0", "connection": "crm"})
    return command | connected | s.some(parse_json=(True, False), timeout_s=(1,)), [None]


def sftp(s: Scene) -> Made:
    at = {
        "server": s.pick("127.0.0.1:9", "sftp.example.com"),
        "connection": "crm",
        "path": s.pick("/in", f"<{s.head()}>"),
    }
    write = {"operation": "write", "content": s.pick("text", f"<{s.head()}>")} | s.some(overwrite=(True, False))
    made = s.pick(
        s.some(operation=("list",), pattern=("*.csv",), max_entries=(1, 10_000)),
        {"operation": s.pick("read", "delete", "make_folder")},
        write,
        {"operation": "move", "to": "/out"} | s.some(make_folders=(True, False)),
    )
    return at | made | s.some(timeout_s=(1,)), [None]


def knowledge(s: Scene) -> Made:
    name = {"name": s.pick("book", f"<{s.head()}>")}
    add = {"operation": "add", "content": s.pick("text", f"<{s.head()}>")} | s.some(title=("Book",), source=("x",))
    search = s.some(operation=("search",), limit=(1, 50), mode=("hybrid", "vector", "text"))
    made = s.pick({"query": f"<{s.head()}>"} | search, name | add, name | {"operation": s.pick("delete", "embed")})
    return {"collection": "docs"} | made, [None]


def _question(s: Scene) -> Document:
    return s.some(title=("Go on?", f"<{s.head()}>"), text=("Look at it.",), show=(s.value(), {"a": s.value()}))


def _notify(s: Scene) -> Document:
    return s.some(email=("a@example.org", ["a@example.org", "b@example.org"]), webhook=("https://up.example.org/told",))


def _reminded(s: Scene, params: Document) -> Document:
    return params | s.some(remind_before_s=(0.5, 30, 59)) if params.get("expires_in_s", 0) >= 60 else params


def approval(s: Scene) -> Made:
    params = _question(s) | s.some(
        fields=tuple(FORMS),
        actions=(["yes", "no"], []),
        expires_in_s=(0.001, 60, 604_800),
        notify=(_notify(s),),
        by=(["role:approver"], ["user:ada", "role:admin"]),
        not_starter=(True, False),
    )
    params = _reminded(s, params)
    actions = params.get("actions", ["approve", "reject"])
    if s.chance(6):
        params["on_expire"] = s.pick("fail", "continue", "skip", *actions)
    if actions and s.chance(4):
        params["outcomes"] = {actions[0]: s.pick("It continues.", f"Pays <{s.head()}>.")}
    failing = [action for action in actions if action != params.get("on_expire")]
    if failing and s.chance(4):
        params["fail_on"] = failing[-1:]
    return params, [None] if not actions or s.chance(6) else [actions[0]]


def form(s: Scene) -> Made:
    expiry = s.some(expires_in_s=(0.001, 60), on_expire=("fail", "continue", "skip"), notify=(_notify(s),))
    return {"fields": s.pick(*FORMS)} | _question(s) | s.some(submit=("Send",)) | _reminded(s, expiry), [None]


def callback(s: Scene) -> Made:
    send: Document = {"url": "https://up.example.org/jobs"} | s.some(
        method=("POST", "PUT", "PATCH"), headers=({"X-A": "${KEY}"}, {"X-N": 1}), body=(s.value(), {"x": s.value()})
    )
    expiry = s.some(expires_in_s=(0.001, 60), on_expire=("fail", "continue", "skip"))
    return s.some(title=("A job",), send=(send, send), schema=tuple(SCHEMAS)) | expiry, [None]


def job(s: Scene) -> Made:
    expiry = s.some(expires_in_s=(0.001, 60), on_expire=("fail", "continue", "skip"), schema=tuple(SCHEMAS))
    if s.chance(6):
        by = s.some(adapter=("http",), headers=({"X-A": "${KEY}"},), job=(s.value(), {"x": s.value()}))
        return {"url": "https://up.example.org/jobs"} | by | expiry, [None]
    more = s.some(
        command=(["train"], []), args=(["--n", 1], ["<input.n>"]), env=({"LEVEL": 3}, {}), namespace=("jobs",),
        resources=({"limits": {"memory": "2Gi"}},),
    )  # fmt: skip
    return {"adapter": "kubernetes", "image": "train:1"} | more | expiry, [None]


def wait(s: Scene) -> Made:
    return s.pick({"seconds": 0}, {"seconds": 0.01}, {"seconds": 3600}, {"until": "2027-01-31T09:00:00+02:00"}), [None]


def signal(s: Scene) -> Made:
    expiry = s.some(expires_in_s=(0.001, 60), on_expire=("fail", "continue", "skip"))
    return {"name": s.pick("go", f"go <{s.head()}>")} | s.some(correlation=("k", 7)) | expiry, [None]


def run_workflow(s: Scene) -> Made:
    optional = s.some(input=({"n": 2}, s.value(), {"n": s.value()}), trigger=("start", "nightly"))
    if s.chance(6):
        return {"workflow": s.pick("child", f"<{s.head()}>")} | s.some(version=(1, None, "<input.n>")) | optional, [
            None
        ]
    inner = nested(s.draw(st.integers(0, 3)))
    return {"definition": s.pick(inner, json.dumps(inner), f"<{s.head()}>")} | optional, [None]


def nested(levels: int) -> Document:
    """A document that runs a document that runs ..., so many times."""
    value: Document = {"type": "set", "params": {"value": "<input.n>"}}
    for level in range(levels + 1):
        blocks = {
            "start": {"type": "start"},
            "nightly": {"type": "schedule", "params": {"cron": "0 2 * * *"}},
            "do": value,
        }
        edges = [{"source": "start", "target": "do"}, {"source": "nightly", "target": "do"}]
        document = {"format": "weft/1", "name": f"inner {level}", "blocks": blocks, "edges": edges}
        value = {"type": "run_workflow", "params": {"definition": document, "input": {"n": "<input.n>"}}}
    return document


def break_(s: Scene) -> Made:
    return {}, [None]


def response(s: Scene) -> Made:
    return s.some(status=(200, 404, 599), headers=({"X-A": "b"}, {"X-N": None}), body=(s.value(), {"x": s.value()})), []


def continue_as_new(s: Scene) -> Made:
    return s.some(input=({"n": 3}, {"n": "<input.n>"}, {})), []


def note(s: Scene) -> Made:
    return s.some(text=(s.text(), "<nothing> is looked up")), []


def loop(s: Scene) -> Made:
    modes: tuple[Document, ...] = (
        {"mode": "for", "count": 2},
        {"mode": "for", "count": "<input.n ?? 1>", "max": "<input.n ?? 5>", "on_max": "exit"},
        {"mode": "each", "items": [1, "two"]},
        {"mode": "each", "items": {"a": 1}},
        {"mode": "while", "condition": "<loop.index> < 2", "max": 3, "on_max": "exit"},
        {"mode": "until", "condition": "true", "max": 5, "on_max": "fail"},
        {"mode": "do_while", "condition": "<loop.index> < 1"},
    )
    return s.pick(*modes) | s.some(results=("ends", "value", "all")), ["out"]


def parallel(s: Scene) -> Made:
    modes: tuple[Document, ...] = (
        {"count": 2},
        {"mode": "count", "count": "<input.n ?? 1>"},
        {"mode": "each", "items": {"a": 1}},
        {"items": [1, 2, 3]},
        {"count": 0},
    )
    optional = s.some(
        concurrency=(1, 2), on_branch_error=("fail", "continue", "collect"), results=("ends", "value", "all")
    )
    return s.pick(*modes) | optional, ["out"]


PARAMS: dict[str, Callable[[Scene], Made]] = {
    make.__name__.rstrip("_"): make
    for make in (
        start, schedule, webhook, form_trigger, chat_trigger, set_, variables, function, python, condition, router,
        agent, model_router, evaluator, guardrail, http, email, file, sql, redis, sftp, knowledge, approval, form,
        callback, job, wait, signal, run_workflow, break_, response, continue_as_new, note, loop, parallel,
    )
}  # fmt: skip

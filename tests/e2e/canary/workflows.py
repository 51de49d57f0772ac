"""What real workflows do with a secret: 40 of them. Each calls a service with both secrets and a connection, which
writes them into its answer in the spelling that the run's input names, and does one thing with that answer."""

from __future__ import annotations

from typing import Any

from tests.support.documents import Json, document, in_a_row

FAILS = {"retry": {"max_attempts": 2, "initial_ms": 10}}
ONCE = {"retry": {"max_attempts": 1}}
ECHO = "<call.body>"
CALLED = "tests.e2e.canary.functions"
CONNECTIONS: dict[str, Json] = {
    "link": {"kind": "api_key", "name": "X-Linked"},
    "bearer": {"kind": "bearer"},
    "login": {"kind": "basic", "username": "ada"},
}
NOTE = {"type": "object", "properties": {"note": {"type": "string", "default": ECHO}}}


def call(base: str, kind: str = "text", **more: Any) -> Json:
    """Both secrets go out, in a header and in a body, and a connection."""
    params = {
        "method": "POST",
        "url": f"{base}/{kind}/<start.how>",
        "headers": {"Authorization": "Bearer ${CANARY}"},
        "body": {"password": "${PLAIN}"},
        "connection": "link",
    }
    return {"type": "http", "params": params | more, "policy": ONCE}


def workflows(base: str, refusing: str, closed: str, mails: str) -> dict[str, Json]:
    """`base`: URL of the service. `refusing`: of another host and port, which no secret may be sent to. `closed`: where
    nothing listens. `mails`: host:port of a mail server."""
    echo = call(base)

    def after(name: str, blocks: Json, edges: list[str] | None = None, **more: Any) -> Json:
        return in_a_row(name, {"call": echo, **blocks}, edges or [], **more)

    def code(source: str, language: str = "javascript", **more: Any) -> Json:
        return {"type": "function", "params": {"code": source, "language": language, **more}, "policy": ONCE}

    def with_errors(name: str, failing: Json) -> Json:
        """The error itself becomes a value, and then the end of the run."""
        return document(
            name,
            "start call",
            "call fails",
            "fails error keep",
            "keep again",
            blocks={
                "call": echo,
                "fails": failing,
                "keep": {"type": "set", "params": {"value": {"all": "<fails>", "text": "<fails.error>"}}},
                "again": failing,
            },
        )

    def asks(**more: Any) -> Json:
        actions = {"actions": ["yes"]}
        return {
            "type": "approval",
            "params": {
                "title": "About <call.body>",
                "text": ECHO,
                "show": {"x": ECHO},
                "fields": NOTE,
                **actions,
                **more,
            },
        }

    def model(**params: Any) -> Json:
        return {"params": {"model": "dev:m", "api_key": "${PLAIN}", **params}, "policy": ONCE}

    fetch: Json = {
        "name": "fetch",
        "block": "http",
        "params": {"url": f"{base}/text/{{{{how}}}}", "method": "POST", "headers": {"Authorization": "${CANARY}"}},
        "arguments": {"type": "object", "properties": {"how": {"type": "string"}}},
    }
    found = {
        "http-json": in_a_row("w", {"call": call(base, "json"), "keep": _set({"b": ECHO, "s": "<call.status>"})}),
        "http-query": in_a_row(
            "w", {"call": call(base, query={"q": "${CANARY}"}, url=f"{base}/query/<start.how>?p=${{PLAIN}}")}
        ),
        "http-header": in_a_row("w", {"call": call(base, "header"), "keep": _set("<call.headers>")}),
        "http-fails": with_errors("w", {**call(base, "fail"), "policy": FAILS}),
        "http-redirect": with_errors("w", call(base, "redirect")),
        "http-not-json": in_a_row("w", {"call": call(base, "broken"), "keep": _set("<call>")}),
        "http-refused": with_errors("w", call(refusing, query={"q": "${CANARY}"})),
        "http-closed": with_errors("w", call(closed, url=f"{closed}/x?p=${{PLAIN}}&q=${{CANARY}}")),
        "http-assign": after("w", {"last": {**echo, "assign": "$.kept"}}, variables={"kept": None}),
        "set": after("w", {"keep": _set({"t": ECHO, "l": [ECHO], ECHO: 1})}),
        "variables": after(
            "w",
            {"keep": {"type": "variables", "params": {"assign": {"v": ECHO, "w": [ECHO]}}}},
            variables={"v": 0, "w": 0},
        ),
        "javascript": after(
            "w",
            {"run": code("console.log('it is', <call.body>); console.error({a: <call.body>}); return [<call.body>]")},
        ),
        "javascript-throws": with_errors("w", code("throw new TypeError('cannot use ' + <call.body>)")),
        "javascript-floods": after(
            "w", {"run": code("for (let i = 0; i < 400; i++) console.log(i + <call.body>); return 1")}
        ),
        "python": after(
            "w",
            {"run": code("print('it is', <call.body>)\nctx.log(<call.body>)\nreturn {'a': [<call.body>]}", "python")},
        ),
        "python-raises": with_errors("w", code("raise KeyError(<call.body>)", "python")),
        "functions": after(
            "w", {"run": {"type": "python", "params": {"function": "tell", "arguments": {"text": ECHO}}}}
        ),
        "function-fails": with_errors(
            "w", {"type": "python", "params": {"function": "fail", "arguments": {"text": ECHO}}, "policy": ONCE}
        ),
        "condition": with_errors(
            "w", {"type": "condition", "params": {"cases": [{"id": "a", "when": "<call.body>.nothing.at.all > 1"}]}}
        ),
        "loop": after(
            "w",
            {
                "each": {"type": "loop", "params": {"mode": "each", "items": [ECHO, {"a": ECHO}]}},
                "item": {**_set("<loop.item>"), "parent": "each"},
                "end": _set("<each.results>"),
            },
            ["each body item"],
        ),
        "parallel": after(
            "w",
            {
                "each": {"type": "parallel", "params": {"mode": "each", "items": [ECHO, [ECHO]]}},
                "item": {**_set("<parallel.item>"), "parent": "each"},
                "end": _set("<each.results>"),
            },
            ["each body item"],
        ),
        "child": after(
            "w",
            {
                "run": {
                    "type": "run_workflow",
                    "params": {"workflow": "canary-called", "input": {"text": ECHO, "l": [ECHO]}},
                }
            },
        ),
        "approval": after(
            "w",
            {"ask": asks(notify={"email": ["a@example.org"], "webhook": f"{base}/text/plain"}), "end": _set("<ask>")},
        ),
        "form": after(
            "w",
            {"ask": {"type": "form", "params": {"title": ECHO, "text": ECHO, "fields": NOTE}}, "end": _set("<ask>")},
        ),
        "signal": after(
            "w", {"ask": {"type": "signal", "params": {"name": "go", "correlation": ECHO}}, "end": _set("<ask>")}
        ),
        "callback": after(
            "w",
            {
                "ask": {
                    "type": "callback",
                    "params": {
                        "title": ECHO,
                        "send": {
                            "method": "POST",
                            "url": f"{base}/text/<start.how>",
                            "headers": {"Authorization": "${CANARY}"},
                        },
                    },
                },
                "end": _set("<ask>"),
            },
        ),
        "response": after(
            "w",
            {
                "end": {
                    "type": "response",
                    "params": {"status": 201, "headers": {"X-Echo": "a <start.how>"}, "body": {"b": ECHO}},
                }
            },
        ),
        "email": with_errors(
            "w",
            {
                "type": "email",
                "params": {"to": "<start.how>@example.org", "subject": "About it", "body": "${PLAIN}"},
                "policy": ONCE,
            },
        ),
        "email-subject": with_errors(
            "w", {"type": "email", "params": {"to": "<call.body>@example.org", "subject": ECHO}, "policy": ONCE}
        ),
        "sql": after(
            "w",
            {
                "ask": {
                    "type": "sql",
                    "params": {
                        "database": "canary.db",
                        "query": "SELECT :t AS t, hex(:t) AS h, json_array(:t) AS j",
                        "parameters": {"t": ECHO},
                    },
                }
            },
        ),
        "sql-fails": with_errors(
            "w",
            {
                "type": "sql",
                "params": {"database": "canary.db", "query": "SELECT json(:t)", "parameters": {"t": ECHO}},
                "policy": ONCE,
            },
        ),
        "sql-refused": with_errors(
            "w", {"type": "sql", "params": {"database": "${DSN}", "query": "SELECT 1"}, "policy": ONCE}
        ),
        "agent": after(
            "w",
            {
                "ask": {
                    "type": "agent",
                    **model(prompt="say <call.body>", tools=[fetch], system="use the tool <start.how>"),
                }
            },
        ),
        "agent-memory": in_a_row(  # the key of a memory is short
            "w",
            {
                "call": call(base, "short"),
                "ask": {"type": "agent", **model(prompt="keep <call.body>", memory="of <call.body>")},
            },
        ),
        "http-file": in_a_row("w", {"call": call(base, "file", save_file=True), "keep": _set(ECHO)}),
        "agent-refused": with_errors("w", {"type": "agent", **model(model="echo:<start.how>", prompt="hello")}),
        "evaluator": with_errors(
            "w", {"type": "evaluator", **model(content=ECHO, metrics=[{"name": "m", "min": 0, "max": 1}])}
        ),
        "agent-connected": with_errors(
            "w",
            {
                "type": "agent",
                "params": {"model": "echo:<start.how>", "prompt": ECHO, "connection": "bearer"},
                "policy": ONCE,
            },
        ),
        "agent-tool-connected": after(
            "w",
            {
                "ask": {
                    "type": "agent",
                    "params": {
                        "model": "dev:m",
                        "connection": "link",
                        "prompt": "say <call.body>",
                        "tools": [{**fetch, "params": {**fetch["params"], "connection": "link"}}],
                    },
                    "policy": ONCE,
                }
            },
        ),
        "agent-mcp-connected": with_errors(
            "w",
            {
                "type": "agent",
                "params": {
                    "model": "dev:m",
                    "prompt": ECHO,
                    "tools": [{"name": "t", "mcp": {"url": f"{base}/fail/<start.how>", "connection": "bearer"}}],
                },
                "policy": ONCE,
            },
        ),
        "email-connected": with_errors(
            "w",
            {
                "type": "email",
                "params": {
                    "to": "<start.how>@example.org",
                    "subject": "About it",
                    "body": ECHO,
                    "connection": "login",
                    "server": mails,
                },
                "policy": ONCE,
            },
        ),
        "sql-connected": with_errors(
            "w",
            {
                "type": "sql",
                "params": {
                    "database": closed.replace("http", "postgresql") + "/d",
                    "query": "SELECT 1",
                    "connection": "login",
                },
                "policy": ONCE,
            },
        ),
        "cache": after(
            "w", {"run": {**code("return [<call.body>]"), "policy": {"cache": {"ttl_s": 60, "key": "<call.body>"}}}}
        ),
    }
    return {name: {**body, "name": f"canary-{name}"} for name, body in found.items()}


def _set(value: Any) -> Json:
    return {"type": "set", "params": {"value": value}}


CHILD = document("canary-called", "start keep", blocks={"keep": _set({"got": "<start>"})})
HOOK: Json = {
    "format": "weft/1",
    "name": "canary-hook",
    "blocks": {
        "hook": {"type": "webhook", "params": {"auth": "none", "respond": "run"}},
        "keep": _set("<hook.body>"),
        "end": {"type": "response", "params": {"body": {"got": "<hook.body>"}}},
    },
    "edges": [{"source": "hook", "target": "keep"}, {"source": "keep", "target": "end"}],
}

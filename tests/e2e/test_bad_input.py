"""Whatever is sent, the answer is a typed refusal within a moment, and the server is as well as before.

One server process for the whole file. Time limits here are generous, for slow machines; the time each case took is
recorded as the property `ms` of its test.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.server import SyncServerProcess

ANSWER_S_MAX = 2.0
# On a busy machine an answer takes longer, but costs the server no more processor time: a second in the dearest case.
# What is not bounded costs minutes.
CPU_S_MAX = 6.0
MEMORY_GROWTH_MAX_KIB = 300 * 1024
JSON = {"content-type": "application/json"}
Send = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    folder = tmp_path_factory.mktemp("bad-input")
    process = SyncServerProcess(folder, {}, log=folder / "log")
    yield process
    if process.running:
        process.kill()


@pytest.fixture(scope="module")
def client(server: SyncServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=90) as client:
        # The first request pays for what is loaded on first use: the sandbox, the JSON Schema of schemas.
        warm = {"format": "weft/1", "input": {"pattern": "a|b"}, "blocks": {"s": {"type": "start"}}, "edges": []}
        assert client.post("/api/runs?wait=60", json={"document": warm, "input": "a"}).status_code == 200
        yield client


@pytest.fixture
def send(server: SyncServerProcess, client: httpx.Client, record_property: Callable[[str, Any], None]) -> Send:
    """One request: in time, no 5xx, and a problem if it is refused."""

    def call(method: str, path: str, **how: Any) -> httpx.Response:
        worked, began = cpu_s(server), time.monotonic()
        response = client.request(method, path, **how)
        seconds, worked = time.monotonic() - began, cpu_s(server) - worked
        record_property("ms", round(seconds * 1000))
        record_property("cpu_ms", round(worked * 1000))
        took = f"{method} {path[:80]} took {seconds:.2f} s, {worked:.2f} s of them on a processor"
        assert seconds < ANSWER_S_MAX or worked < CPU_S_MAX, took
        assert response.status_code < 500, response.text[:2000]
        if response.status_code >= 400:
            assert_problem(response)
        return response

    return call


@pytest.fixture(autouse=True)
def still_well(send: Send) -> Iterator[None]:
    yield
    assert send("GET", "/healthz").json() == {"status": "ok"}


def cpu_s(server: SyncServerProcess) -> float:
    """Processor time of the server so far. Where there is no /proc to ask, the clock on the wall."""
    if sys.platform != "linux":
        return time.monotonic()
    fields = Path(f"/proc/{server.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def assert_problem(response: httpx.Response) -> None:
    assert response.headers["content-type"].startswith("application/problem+json"), response.headers
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["code"] and problem["detail"] and problem["title"]
    assert "Traceback" not in response.text


def resolves(document: Any, pointer: str) -> bool:
    """Does the pointer lead somewhere, or name a member that is missing where one could be?"""
    at = document
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for n, part in enumerate(parts):
        if isinstance(at, dict) and part in at:
            at = at[part]
        elif isinstance(at, list) and part.isdecimal() and int(part) < len(at):
            at = at[int(part)]
        else:
            return n == len(parts) - 1
    return True


def long_name(n: int) -> str:
    """120 letters that differ in some."""
    return (f"abcdefgh{n:05d}" * 10)[:120]


def edge(source: str, target: str, handle: str | None = None) -> dict[str, Any]:
    return {"source": source, "target": target, **({"handle": handle} if handle else {})}


def document(blocks: dict[str, Any], *edges: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "bad",
        "blocks": {"start": {"type": "start"}, **blocks},
        "edges": list(edges),
        **more,
    }


def one(value: Any = 1, **more: Any) -> dict[str, Any]:
    """A document of one `set` block."""
    return document({"a": {"type": "set", "params": {"value": value}}}, edge("start", "a"), **more)


def container(kind: str, **params: Any) -> dict[str, Any]:
    blocks = {"c": {"type": kind, "params": params}, "a": {"type": "set", "parent": "c", "params": {"value": 1}}}
    return document(blocks, edge("start", "c"), edge("c", "a", "body"))


def condition(expression: Any) -> dict[str, Any]:
    cases = [{"id": "yes", "when": expression}, {"id": "no"}]
    blocks = {
        "c": {"type": "condition", "params": {"cases": cases}},
        "a": {"type": "set", "params": {"value": 1}},
    }
    return document(blocks, edge("start", "c"), edge("c", "a", "yes"), edge("c", "a", "no"))


def nested(depth: int) -> dict[str, Any]:
    blocks: dict[str, Any] = {}
    edges = [edge("start", "l0")]
    for n in range(depth):
        blocks[f"l{n}"] = {"type": "loop", "params": {"mode": "for", "count": 1}}
        if n:
            blocks[f"l{n}"]["parent"] = f"l{n - 1}"
            edges.append(edge(f"l{n - 1}", f"l{n}", "body"))
    blocks["a"] = {"type": "set", "parent": f"l{depth - 1}", "params": {"value": 1}}
    return document(blocks, *edges, edge(f"l{depth - 1}", "a", "body"))


def brackets(depth: int, *, objects: bool = False) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth if objects else b"[" * depth + b"]" * depth


def around(inner: bytes) -> bytes:
    """A run request with `inner` somewhere in its document."""
    return b'{"document": {"format": "weft/1", "blocks": {}, "x": ' + inner + b"}}"


# --- bytes that are no JSON, or too much of it ---

RAW = {
    "not json": (b"{hello}", 400),
    "truncated": (b'{"document": {"blocks": ', 400),
    "two values": (b"{} {}", 400),
    "not utf-8": (b'{"document": "\xff\xfe"}', 400),
    "a byte order mark": (b'\xef\xbb\xbf{"document": {}}', 400),
    "half of a surrogate pair": (b'{"document": {"name": "\\ud800"}}', 400),
    "a raw surrogate": (b'{"document": {"name": "\xed\xa0\x80"}}', 400),
    "NaN": (around(b"NaN"), 400),
    "Infinity": (around(b"-Infinity"), 400),
    "1e999": (around(b"1e999"), 400),
    "arrays 10^4 deep": (around(brackets(10_000)), 400),
    "objects 10^4 deep": (around(brackets(10_000, objects=True)), 400),
    "arrays 10^5 deep, never closed": (b"[" * 100_000, 400),
    "arrays as deep as the parser takes": (around(brackets(1_000)), 400),
    "arrays just too deep": (around(brackets(67)), 400),
    "arrays too deep for a document": (around(brackets(65)), 422),
    "half a million lists": (around(b"[" + b"[]," * 500_000 + b"[]]"), 400),
    "as many lists as are read": (around(b"[" + b"[]," * 190_000 + b"[]]"), 422),
    "many numbers": (around(b"[" + b"1," * 900_000 + b"1]"), 422),
    "a text of 5 MB": (around(b'"' + b"x" * 5_000_000 + b'"'), 413),
    "3 MiB of blanks": (b" " * (3 << 20), 413),
    "a text of 1.5 MB": (around(b'"' + b"x" * 1_500_000 + b'"'), 422),
    "no body": (b"", 422),
    "blanks": (b" \n\t ", 422),
    "a list": (b"[]", 422),
    "a number": (b"17", 422),
    "null": (b"null", 422),
    "only a prototype": (b'{"__proto__": {"document": {}}}', 422),
    "the same key twice, the last one wrong": (b'{"document": {"format": "weft/1", "blocks": {}, "blocks": []}}', 422),
}


@pytest.mark.parametrize(("body", "status"), RAW.values(), ids=RAW.keys())
def test_bytes(send: Send, body: bytes, status: int) -> None:
    response = send("POST", "/api/runs", content=body, headers=JSON)
    assert response.status_code == status
    problem = response.json()
    assert problem["hint"], problem
    if status != 413:
        assert problem["pointer"] is not None


@pytest.mark.parametrize("path", ["/api/validate", "/api/workflows", "/api/runs", "/api/workflows/x/runs", "/login"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"1e999", brackets(10_000)], ids=repr)
def test_every_way_in_refuses_what_is_no_object(send: Send, path: str, body: bytes) -> None:
    if path == "/api/workflows/x/runs" and body == b"":
        assert send("POST", path, content=body, headers=JSON).status_code == 404  # an empty request is a right one
        return
    too_long = (413,) if path == "/login" and len(body) > 4096 else ()
    assert send("POST", path, content=body, headers=JSON).status_code in (400, 422, *too_long)


@pytest.mark.parametrize(
    "media",
    [
        None,
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "application/json/..",
        ",application/json",
        "a" * 5000,
    ],
)
def test_other_content_types(send: Send, media: str | None) -> None:
    headers = {} if media is None else {"content-type": media}
    response = send("POST", "/api/runs", content=b'{"document": {}}', headers=headers)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


def test_a_body_that_trickles_in_is_bounded_too(send: Send) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * 65_536

    assert send("POST", "/api/runs", content=chunks(), headers=JSON).status_code == 413


# --- documents ---

ID = "x" * 100_000
LONG = 450
DOCUMENTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, ("format_unknown",)),
    "another format": ({"format": "weft/9", "blocks": {}}, ("format_unknown",)),
    "blocks as a list": ({"format": "weft/1", "blocks": []}, ("field_invalid",)),
    "no start": ({"format": "weft/1", "blocks": {}}, ("trigger_missing",)),
    "a prototype as a block": (
        document({"__proto__": {"type": "constructor", "params": {"__proto__": 1}}}, edge("start", "__proto__")),
        ("block_type_unknown",),
    ),
    "an id of 100 KB": (document({ID: {"type": "set"}}, edge("start", ID)), ("id_invalid",)),
    "odd ids": (
        document({name: {"type": "set"} for name in ("", " ", "a/b", "~0~1", "ａ", "a\u0000", "\u202e")}),
        ("id_invalid",),
    ),
    "a cycle of two": (
        document(
            {"a": {"type": "note2"}, "b": {"type": "set", "params": {"value": 1}}},
            edge("start", "a"),
            edge("a", "b"),
            edge("b", "a"),
        ),
        ("cycle", "block_type_unknown"),
    ),
    "an edge to itself": (one() | {"edges": [edge("start", "a"), edge("a", "a")]}, ("cycle",)),
    "a long cycle": (
        document(
            {f"a{n}": {"type": "set", "params": {"value": 1}} for n in range(LONG)},
            edge("start", "a0"),
            *(edge(f"a{n}", f"a{(n + 1) % LONG}") for n in range(LONG)),
        ),
        ("cycle",),
    ),
    "containers that hold each other": (
        document({"a": {"type": "loop", "parent": "b"}, "b": {"type": "loop", "parent": "a"}}),
        ("parent_cycle",),
    ),
    "a container in itself": (document({"a": {"type": "parallel", "parent": "a"}}), ("parent_cycle",)),
    "containers 11 deep": (nested(11), ("nesting_too_deep",)),
    "containers 400 deep": (nested(400), ("nesting_too_deep",)),
    "an unknown block": (document({"a": {"type": "aproval"}}, edge("start", "a")), ("block_type_unknown",)),
    "a wrong handle": (one() | {"edges": [edge("start", "a"), edge("a", "a", "yess")]}, ("edge_handle_unknown",)),
    "a missing target": (one() | {"edges": [edge("start", "b")]}, ("edge_target_missing",)),
    "a missing source": (one() | {"edges": [edge("b", "a")]}, ("edge_source_missing",)),
    "an edge to the start": (one() | {"edges": [edge("start", "a"), edge("a", "start")]}, ("trigger_has_input",)),
    "an edge into a container": (
        container("loop", mode="for", count=1) | {"edges": [edge("start", "a"), edge("start", "c")]},
        ("edge_crosses_border", "container_unwired"),
    ),
    "an edge out of a container": (
        document(
            {
                "c": {"type": "parallel", "params": {"count": 2}},
                "a": {"type": "set", "parent": "c", "params": {"value": 1}},
                "b": {"type": "set", "params": {"value": 1}},
            },
            edge("start", "c"),
            edge("c", "a", "body"),
            edge("a", "b"),
        ),
        ("edge_crosses_border",),
    ),
    "an empty container": (
        document({"c": {"type": "loop", "params": {"mode": "for", "count": 1}}}, edge("start", "c")),
        ("container_empty",),
    ),
    "10^9 branches": (container("parallel", count=10**9), ("limit_branches",)),
    "10^9 branches as text": (container("parallel", count="1000000000"), ("limit_branches",)),
    "10^9 iterations": (container("loop", mode="for", count=10**9), ("limit_iterations",)),
    "10^9 iterations, allowed by its bound": (
        container("loop", mode="for", count=10**9, max=10**9),
        ("limit_iterations",),
    ),
    "-1 branches": (container("parallel", count=-1), ("param_invalid",)),
    "a number of 19 digits": (container("parallel", count=10**18), ()),
    "a reference into a parallel": (
        document(
            {
                "c": {"type": "parallel", "params": {"count": 2}},
                "a": {"type": "set", "parent": "c", "params": {"value": 1}},
                "b": {"type": "set", "params": {"value": "<a>"}},
            },
            edge("start", "c"),
            edge("c", "a", "body"),
            edge("c", "b"),
        ),
        ("reference_into_parallel",),
    ),
    "a reference to what comes later": (
        document(
            {
                "a": {"type": "set", "params": {"value": "<b.x>"}},
                "b": {"type": "set", "params": {"value": 1}},
            },
            edge("start", "a"),
            edge("a", "b"),
        ),
        ("reference_not_upstream",),
    ),
    "a default that is no JSON": (one("<start.x ?? nope>"), ("reference_default_invalid",)),
    "a path that is none": (one() | {"variables": {}}, ()),
    "a retry of a million": (
        document({"a": {"type": "set", "policy": {"retry": {"max_attempts": 10**6}}}}, edge("start", "a")),
        ("field_invalid",),
    ),
    "a time limit of 0": (one(settings={"timeout_s": 0}), ("field_invalid",)),
    "a time limit in the far future": (one(settings={"timeout_s": 1e18}), ("field_invalid",)),
    "no slots": (one(settings={"max_concurrency": 0}), ("field_invalid",)),
    "a schema that is none": (one(input={"type": "strin"}), ("input_schema_invalid",)),
    "a schema from elsewhere": (one(input={"$ref": "http://127.0.0.1:9/s.json"}), ("input_schema_invalid",)),
    "a schema from a file": (one(input={"$ref": "file:///etc/passwd"}), ("input_schema_invalid",)),
    "a pattern that is none": (one(input={"pattern": "("}), ("input_schema_invalid",)),
    "a pattern of brackets": (one(input={"pattern": "(" * 3000 + ")" * 3000}), ("input_schema_invalid",)),
    "a pattern that repeats too much": (one(input={"pattern": "a{99999999999999999999}"}), ("input_schema_invalid",)),
    "a schema of 20,000 parts": (
        one(input={"properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}),
        ("input_schema_invalid",),
    ),
    "2,000 edges without a target, among long names": (
        document(
            {long_name(n): {"type": "set", "params": {"value": 1}} for n in range(400)},
            *(edge("start", long_name(n + 9_000)) for n in range(1_900)),
        ),
        ("edge_target_missing",),
    ),
    "50,000 unknown fields": (
        {f"block{n}": 1 for n in range(50_000)} | {"format": "weft/1", "blocks": {}},
        ("trigger_missing",),
    ),
    "50,000 unknown params": (
        document({"a": {"type": "set", "params": {f"valu{n}": 1 for n in range(50_000)}}}, edge("start", "a")),
        ("param_unknown",),
    ),
    "70,000 references": (one("".join(f"<start.x{n}>" for n in range(70_000))), ("limit_references",)),
    "a reference with 200,000 steps": (one("<" + "a." * 200_000 + "a>"), ()),
    "30,000 environment names in a program": (
        document(
            {"f": {"type": "function", "params": {"code": "[" + ",".join(f"${{A{n}}}" for n in range(6_000)) + "]"}}},
            edge("start", "f"),
        ),
        (),
    ),
    "4,800 expressions": (
        document(
            {
                f"c{n}": {
                    "type": "condition",
                    "params": {"cases": [{"id": f"y{m}", "when": f"{n}+{m}"} for m in range(20)]},
                }
                for n in range(240)
            },
            *(edge("start", f"c{n}") for n in range(240)),
        ),
        ("limit_expressions",),
    ),
    "20,000 cases": (
        document(
            {"c": {"type": "condition", "params": {"cases": [{"id": f"y{n}"} for n in range(20_000)]}}},
            edge("start", "c"),
        ),
        ("param_invalid",),
    ),
    "a timer that is no number": (
        document({"w": {"type": "wait", "params": {"seconds": [1]}}}, edge("start", "w")),
        ("param_invalid",),
    ),
    "a workflow of Sim with nothing in it": ({"blocks": [], "connections": [], "version": "1"}, ()),
    "a workflow of Sim with anything in it": (
        {"blocks": [1, None, {"id": 7}, {"id": "a", "metadata": []}], "connections": [{"source": 1}], "loops": []},
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "codes"), DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_documents(send: Send, given: dict[str, Any], codes: tuple[str, ...]) -> None:
    checked = send("POST", "/api/validate", json=given)
    assert checked.status_code == 200
    found = checked.json()["diagnostics"]
    errors = [finding for finding in found if finding["severity"] == "error"]
    assert set(codes) <= {finding["code"] for finding in errors}, found
    assert checked.json()["valid"] == (not errors)
    for finding in found:
        assert finding["message"] and resolves(given, finding["pointer"]), finding
    for finding in errors:
        assert finding["hint"], finding
    started = send("POST", "/api/runs?wait=1", json={"document": given})
    saved = send("POST", "/api/workflows", json=given)
    if errors:
        for refused in (started, saved):
            assert (refused.status_code, refused.json()["code"]) == (422, "document_invalid")
            assert refused.json()["diagnostics"] == found
            assert refused.json()["pointer"] == errors[0]["pointer"]
            assert refused.json()["hint"] == errors[0]["hint"]
            assert len(refused.json()["detail"]) < 2_000 + len(errors[0]["pointer"])


def test_many_mistakes_are_reported_at_once(send: Send) -> None:
    given = document(
        {
            "a": {"type": "nope"},
            "b": {"type": "http", "params": {"url": 1, "methud": "GET"}},
            "c": {"type": "condition", "params": {"cases": [{"id": "y", "when": "}{"}]}},
            "d": {"type": "loop", "params": {"mode": "for", "count": 10**9}},
            "e": {"type": "set", "params": {"value": "<start.x ?? nope>"}, "policy": {"group": "none"}},
        },
        edge("start", "a"),
        edge("start", "b"),
        edge("start", "c"),
        edge("start", "d"),
        edge("start", "e"),
        edge("e", "e"),
        edge("a", "zzz"),
        edge("b", "a", "sideways"),
    )
    refused = send("POST", "/api/runs", json={"document": given})
    errors = {d["code"] for d in refused.json()["diagnostics"] if d["severity"] == "error"}
    assert errors == {
        "block_type_unknown",
        "param_invalid",
        "param_unknown",
        "expression_invalid",
        "limit_iterations",
        "container_empty",
        "reference_default_invalid",
        "group_unknown",
        "cycle",
        "edge_target_missing",
        "edge_handle_unknown",
    }
    for finding in refused.json()["diagnostics"]:
        assert finding["message"] and resolves(given, finding["pointer"])
        assert finding["severity"] == "warning" or finding["hint"]


# --- expressions ---

NO_EXPRESSION = [
    "1); while(1){}//",
    "}{",
    "while(1){}",
    "1;2",
    "//",
    "/*",
    "\\",
    "<start.x> <start.y>",
    "'" * 1_000 + "(",
    "(" * 5_000,
    "`${" * 2_000,
    "a=>" * 2_000 + "1",
    "x" * 900_000,
    "]})(function(){",
    "1\u2028}\u2029{",
    "return 1",
    "import x from 'y'",
]


@pytest.mark.parametrize("expression", NO_EXPRESSION, ids=lambda text: text[:20])
def test_what_does_not_parse_is_refused(send: Send, expression: str) -> None:
    refused = send("POST", "/api/runs", json={"document": condition(expression)})
    assert refused.status_code == 422
    (error,) = [d for d in refused.json()["diagnostics"] if d["severity"] == "error"]
    assert error["code"] in ("expression_invalid", "limit_expressions")
    assert error["pointer"] == "/blocks/c/params/cases/0/when" and error["hint"]


TIME = "expression_timeout"
HOSTILE = {
    "(() => { while (1) {} })()": {TIME},
    "/(a+)+$/.test('" + "a" * 40 + "!')": {TIME},
    "'x'.repeat(1e9)": {"expression_memory"},  # at once; the next two take a while, and on a busy machine too long
    "new Array(1e9).fill(1)": {"expression_memory", TIME},
    "(function f() { f() })()": {"expression_failed", TIME},
    "constructor.constructor('return process')().exit()": {"expression_failed"},
    "globalThis.constructor.constructor('return this')().require('fs')": {"expression_failed"},
}


@pytest.mark.parametrize(("expression", "codes"), HOSTILE.items(), ids=[text[:25] for text in HOSTILE])
def test_what_parses_but_means_harm_fails_the_run(send: Send, expression: str, codes: set[str]) -> None:
    ended = send("POST", "/api/runs?wait=60", json={"document": condition(expression)})
    assert (ended.status_code, ended.json()["status"]) == (200, "failed")
    assert ended.json()["error"]["code"] in codes


# --- sizes that only the run knows ---

SIZES: dict[str, tuple[dict[str, Any], Any, str]] = {
    "10^9 branches": (container("parallel", count="<input.n>"), 10**9, "loop_limit"),
    "10^9 branches as text": (container("parallel", count="<input.n>"), "1000000000", "loop_limit"),
    "1e300 branches": (container("parallel", count="<input.n>"), 1e300, "loop_limit"),
    "-1 branches": (container("parallel", count="<input.n>"), -1, "loop_count"),
    "half a branch": (container("parallel", count="<input.n>"), 1.5, "loop_count"),
    "a list of branches": (container("parallel", count="<input.n>"), [3], "loop_count"),
    "branches over no list": (container("parallel", mode="each", items="<input.n>"), 10**9, "loop_items"),
    "branches over brackets": (container("parallel", mode="each", items="<input.n>"), "[" * 50_000, "loop_items"),
    "10^9 iterations": (container("loop", mode="for", count="<input.n>"), 10**9, "loop_limit"),
    "10^9 iterations and a bound of 10^9": (
        container("loop", mode="for", count="<input.n>", max="<input.n>"),
        10**9,
        "loop_limit",
    ),
    "10^9 iterations, as many as go": (
        container("loop", mode="for", count="<input.n>", max="<input.n>", on_max="exit"),
        10**9,
        "loop_limit",
    ),
    "iterations over a number": (container("loop", mode="each", items="<input.n>"), 3, "loop_items"),
}


@pytest.mark.parametrize(("given", "n", "code"), SIZES.values(), ids=SIZES.keys())
def test_sizes_from_data_fail_the_run_at_once(send: Send, given: dict[str, Any], n: Any, code: str) -> None:
    ended = send("POST", "/api/runs?wait=60", json={"document": given, "input": {"n": n}})
    assert (ended.status_code, ended.json()["status"]) == (200, "failed")
    error = ended.json()["error"]
    assert (error["code"], error["block"]) == (code, "c") and error["message"]


@pytest.mark.parametrize("kind", ["parallel", "loop"])
def test_more_work_than_a_run_may_do_fails_and_others_continue(send: Send, kind: str) -> None:
    """99,999 rounds are within the container's limit, but not within the run's."""
    params = {"mode": "for", "max": 100_000} if kind == "loop" else {}
    given = container(kind, count="<input.n>", **params)
    run = send("POST", "/api/runs", json={"document": given, "input": {"n": 99_999}}).json()["run"]
    deadline = time.monotonic() + 90
    while send("GET", "/api/runs", params={"limit": 1}).json()["runs"][0]["status"] in ("queued", "running"):
        assert send("GET", "/healthz").status_code == 200
        assert time.monotonic() < deadline
    ended = send("GET", f"/api/runs/{run}").json()
    assert (ended["status"], ended["error"]["code"]) == ("failed", "limit_executions")


# --- inputs and schemas ---

INPUTS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "a wrong type": ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": "x"}, "input_invalid"),
    "a missing field": ({"required": ["n"]}, {}, "input_invalid"),
    "no object": ({"type": "object"}, [1], "input_invalid"),
    "100,000 wrong items": ({"type": "array", "items": {"type": "string"}}, [1] * 100_000, "input_invalid"),
    "a pattern that backtracks": ({"pattern": "^(a+)+$"}, "a" * 30 + "!", "check_took_too_long"),
    "a name pattern that backtracks": (
        {"patternProperties": {"^(a+)+$": {}}},
        {"a" * 30 + "!": 1},
        "check_took_too_long",
    ),
    "definitions that multiply": (
        {
            "$ref": "#/$defs/a0",
            "$defs": {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(30)} | {"a30": {}},
        },
        {},
        "check_took_too_long",
    ),
    "a definition that is itself": ({"$ref": "#"}, {}, "schema_invalid"),
    "a definition that is not there": ({"$ref": "#/nope"}, {}, "schema_invalid"),
    "equal items among many": ({"uniqueItems": True}, [{"a": n % 4_999} for n in range(5_000)], "input_invalid"),
    "numbers at the end of the scale": ({"multipleOf": 1e-300}, 1e300, "input_invalid"),
}


@pytest.mark.parametrize(("schema", "value", "code"), INPUTS.values(), ids=INPUTS.keys())
def test_inputs(send: Send, schema: dict[str, Any], value: Any, code: str) -> None:
    refused = send("POST", "/api/runs?wait=1", json={"document": one(input=schema), "input": value})
    problem = refused.json()
    assert refused.status_code in (400, 422) and problem["code"] == code and problem["hint"]
    if code == "input_invalid":
        assert problem["pointer"].startswith("/input") and len(problem["errors"]) <= 20
        assert all(set(error) == {"pointer", "message"} and error["message"] for error in problem["errors"])


@pytest.mark.parametrize("depth", [62, 63, 64, 65, 66, 67, 68])
def test_inputs_may_nest_64_deep(send: Send, depth: int) -> None:
    body = b'{"document": %s, "input": %s}' % (json.dumps(one()).encode(), brackets(depth))
    response = send("POST", "/api/runs?wait=10", content=body, headers=JSON)
    if depth < 64:
        assert (response.status_code, response.json()["status"]) == (200, "succeeded")
    else:
        assert response.status_code in (400, 422) and response.json()["hint"]


# --- addresses and queries ---

RUN = "/api/runs/{run}"
REFUSED: list[tuple[str, str, dict[str, Any], int]] = [
    ("GET", "/api/runs/nope", {}, 404),
    ("GET", "/api/runs/" + "x" * 5_000, {}, 404),
    ("GET", "/api/runs/%00", {}, 404),
    ("GET", "/api/runs/%ED%A0%80", {}, 404),
    ("GET", "/api/runs/%2e%2e%2fworkflows", {}, 404),
    ("GET", "/api/runs/nope/events", {}, 404),
    ("GET", "/api/runs/nope/graph", {}, 404),
    ("GET", "/api/runs/nope/why", {}, 404),
    ("GET", "/api/runs/nope/plan", {}, 404),
    ("POST", "/api/runs/nope/cancel", {"json": {}}, 404),
    ("POST", "/api/runs/nope/signals/go", {"json": {}}, 404),
    ("POST", "/api/runs/nope/signals/%00", {"json": {}}, 404),
    ("GET", "/api/workflows/nope", {}, 404),
    ("POST", "/api/workflows/nope/runs", {"json": {}}, 404),
    ("GET", "/api/workflows/bad?version=0", {}, 400),
    ("GET", "/api/workflows/bad?version=99999999999999999999", {}, 400),
    ("POST", "/api/workflows/bad/runs", {"json": {"version": 2**64 - 1}}, 422),
    ("POST", "/api/workflows/bad/runs", {"json": {"version": -1}}, 422),
    ("POST", "/api/workflows/bad/runs", {"json": {"version": 1.5}}, 422),
    ("POST", "/api/workflows/bad/runs", {"json": {"document": {}}}, 422),
    ("GET", "/resume/nope", {"headers": {"accept": "application/json"}}, 404),
    ("GET", "/api/resume/" + "A" * 43, {}, 404),
    ("POST", "/api/resume/" + "A" * 43, {"json": {}}, 404),
    ("POST", "/resume/%00", {"json": {}}, 404),
    ("GET", "/api/runs?limit=1e9", {}, 400),
    ("GET", "/api/runs?limit=1000000000", {}, 400),
    ("GET", "/api/runs?limit=-1", {}, 400),
    ("GET", "/api/runs?limit=٣", {}, 400),
    ("GET", "/api/runs?status=done", {}, 400),
    ("GET", "/api/waits?status=open", {}, 400),
    ("GET", "/api/waits?limit=0", {}, 400),
    ("GET", RUN + "/events?after=-1", {}, 400),
    ("GET", RUN + "/events?after=1e9", {}, 400),
    ("GET", RUN + "/events?after=99999999999999999999", {}, 400),
    ("GET", RUN + "/events", {"headers": {"last-event-id": "abc"}}, 400),
    ("GET", RUN + "/events", {"headers": {"last-event-id": "-1"}}, 400),
    ("GET", RUN + "/events", {"headers": {"last-event-id": "9" * 400}}, 400),
    ("GET", RUN + "/events", {"headers": {"last-event-id": b"\xd9\xa3"}}, 400),
    ("GET", RUN + "/events?limit=1000000000", {"headers": {"accept": "application/json"}}, 400),
    ("GET", RUN + "/events?since=-5", {"headers": {"accept": "application/json"}}, 400),
    ("GET", RUN + "/plan?format=exe", {}, 400),
    ("GET", RUN + "/why?node=zzz", {}, 404),
    ("GET", RUN + "/why?node=a@b%239", {}, 404),
    ("GET", RUN + "/why?node=a@fan[99999999999999999999]", {}, 404),
    ("POST", RUN + "/cancel", {"json": {}}, 409),
    ("POST", RUN + "/cancel", {"json": {"reason": 1}}, 422),
    ("POST", RUN + "/cancel", {"json": {"reason": "x" * 100_000}}, 422),
    ("POST", RUN + "/signals/" + "x" * 5_000, {"json": {}}, 409),
    ("POST", RUN + "/signals/go", {"json": {"payload": 1, "dedupe_key": "x" * 10_000}}, 422),
    ("POST", RUN + "/signals/go", {"json": {"nothing": 1}}, 422),
    ("POST", "/api/runs?wait=nan", {"json": {"document": one()}}, 400),
    ("POST", "/api/runs?wait=-1", {"json": {"document": one()}}, 400),
    ("POST", "/api/runs", {"json": {"document": one()}, "headers": {"idempotency-key": "x" * 300}}, 400),
    ("POST", "/api/runs", {"json": {"document": one()}, "headers": {"idempotency-key": "x" * 20_000}}, 400),
    ("POST", "/api/runs", {"json": {"document": one()}, "headers": {"idempotency-key": ""}}, 400),
    ("POST", "/api/runs", {"json": {"document": one(), "stop_after": "zzz"}}, 404),
    ("POST", "/api/runs", {"json": {"document": one(), "trigger": "zzz"}}, 422),
    ("POST", "/api/runs", {"json": {"document": one(), "trigger": 1}}, 422),
    ("POST", "/api/runs", {"json": {"document": one(), "input": {}, "extra": 1}}, 422),
    ("POST", "/api/workflows", {"json": {"document": one(), "name": "x" * 100_000}}, 400),
    ("POST", "/api/workflows", {"json": {"document": one(), "name": "a/b"}}, 400),
    ("POST", "/api/workflows", {"json": {"document": one(), "name": "a\u0000"}}, 400),
    ("GET", "/healthz", {"headers": {"x": "y" * 40_000}}, 431),
    ("PUT", "/api/runs", {"json": {}}, 405),
    ("PATCH", RUN, {}, 405),
    ("TRACE", "/api/runs", {}, 405),
    ("GET", "/no/such/thing", {}, 404),
    ("POST", "/demo/echo?delay_ms=1000000000", {"json": {}}, 400),
]


@pytest.fixture(scope="module")
def ended_run(client: httpx.Client) -> str:
    """A run that has ended, of a workflow that is stored as `bad`."""
    assert client.post("/api/workflows", json=one()).status_code in (200, 201)
    return str(client.post("/api/runs?wait=60", json={"document": one()}).json()["run"])


@pytest.mark.parametrize(
    ("method", "path", "how", "status"), REFUSED, ids=[f"{n} {m} {p[:40]}" for n, (m, p, _, _) in enumerate(REFUSED)]
)
def test_addresses_queries_headers(
    send: Send, ended_run: str, method: str, path: str, how: dict[str, Any], status: int
) -> None:
    assert send(method, path.replace("{run}", ended_run), **how).status_code == status


@pytest.mark.parametrize("query", ["after=9007199254740992", "after=999999"])
def test_a_cursor_beyond_the_end_is_the_end(send: Send, ended_run: str, query: str) -> None:
    for headers in ({}, {"accept": "application/json"}):
        assert send("GET", f"/api/runs/{ended_run}/events?{query}", headers=headers).status_code == 200


# --- answers and signals ---

ASKING = document(
    {
        "ask": {
            "type": "approval",
            "params": {
                "title": "Go on?",
                "actions": ["approve", "reject"],
                "fields": {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}, "text": {"type": "string", "maxLength": 10}},
                    "additionalProperties": False,
                },
            },
        }
    },
    edge("start", "ask"),
)
FORM = {"content-type": "application/x-www-form-urlencoded"}
ANSWERS: dict[str, dict[str, Any]] = {
    "no action": {"json": {}},
    "no body": {"content": b"", "headers": JSON},
    "null": {"json": None},
    "an unknown action": {"json": {"action": "aprove"}},
    "an action of another type": {"json": {"action": 1}},
    "a prototype as action": {"json": {"action": "__proto__"}},
    "a field of another type": {"json": {"action": "approve", "fields": {"n": "x"}}},
    "a field that was not asked for": {"json": {"action": "approve", "fields": {"z": 1}}},
    "a prototype as field": {"json": {"action": "approve", "fields": {"__proto__": {"n": 1}}}},
    "a text that is too long": {"json": {"action": "approve", "fields": {"text": "x" * 1_900_000}}},
    "fields as a list": {"json": {"action": "approve", "fields": [1]}},
    "a list": {"json": [1]},
    "a text": {"json": "approve"},
    "something else beside": {"json": {"action": "approve", "token": "x"}},
    "a name that is none": {"json": {"action": "approve", "by": {"a": 1}}},
    "a name that is too long": {"json": {"action": "approve", "by": "x" * 10_000}},
    "3 MiB": {"content": b" " * (3 << 20), "headers": JSON},
    "too deep": {"content": b'{"action": "approve", "fields": {"n": %s}}' % brackets(66), "headers": JSON},
    "much too deep": {"content": b'{"action": "approve", "fields": %s}' % brackets(10_000), "headers": JSON},
    "a form that is no text": {"content": b"%ED%A0%80=%FF&action=\xff", "headers": FORM},
    "a form of 5,000 fields": {"content": b"&".join(b"a%d=1" % n for n in range(5_000)), "headers": FORM},
    "text": {"content": b"approve", "headers": {"content-type": "text/plain"}},
}


@pytest.fixture(scope="module")
def asking(client: httpx.Client) -> tuple[str, str]:
    """(run, path of its resume link)."""
    run = client.post("/api/runs?wait=60", json={"document": ASKING}).json()["run"]
    (wait,) = client.get("/api/waits", params={"run": run}).json()["waits"]
    return run, httpx.URL(wait["link"]).path


@pytest.mark.parametrize("how", ANSWERS.values(), ids=ANSWERS.keys())
def test_bad_answers_leave_the_wait_open(send: Send, asking: tuple[str, str], how: dict[str, Any]) -> None:
    run, link = asking
    for path in (link, "/api" + link):
        if path.startswith("/api") and how.get("headers") == FORM:
            assert send("POST", path, **how).status_code == 415
            continue
        refused = send("POST", path, **how)
        assert 400 <= refused.status_code < 500
        problem = refused.json()
        if refused.status_code == 422:
            assert problem["pointer"].startswith(("", "/")) and (problem.get("hint") or problem["actions"])
    waits = send("GET", "/api/waits", params={"run": run}).json()["waits"]
    assert [wait["status"] for wait in waits] == ["pending"]


def test_a_form_post_that_does_not_fit_shows_the_form_again(client: httpx.Client, asking: tuple[str, str]) -> None:
    _, link = asking
    again = client.post(link, data={"action": "approve", "field.n": "<script>alert(1)</script>"})
    assert again.status_code == 422 and again.headers["content-type"].startswith("text/html")
    assert "<script>alert" not in again.text and "&lt;script&gt;" in again.text


def test_one_answer_is_accepted_and_later_ones_are_not(send: Send, asking: tuple[str, str]) -> None:
    _, link = asking
    assert send("POST", link, json={"action": "approve", "fields": {"n": 1}, "by": "Ada"}).status_code == 200
    late = send("POST", link, json={"action": "reject"})
    assert (late.status_code, late.json()["code"], late.json()["answered_by"]) == (409, "already_answered", "Ada")


@pytest.mark.parametrize("depth", [1, 62, 63, 64, 66])
def test_a_signal_is_accepted_whole_or_refused(send: Send, client: httpx.Client, depth: int) -> None:
    """What a wait could not put out is refused at the door: kept, it would stop its run again and again."""
    given = document({"w": {"type": "signal", "params": {"name": "go"}}}, edge("start", "w"))
    run = client.post("/api/runs?wait=60", json={"document": given}).json()["run"]
    body = b'{"payload": %s}' % brackets(depth)
    response = send("POST", f"/api/runs/{run}/signals/go", content=body, headers=JSON)
    if depth >= 64:
        assert (response.status_code, response.json()["pointer"]) == (400, "/payload")
        assert client.post(f"/api/runs/{run}/cancel", json={}).status_code == 202
        return
    assert response.status_code == 202
    deadline = time.monotonic() + 60
    while (status := client.get(f"/api/runs/{run}").json()["status"]) != "succeeded":
        assert status in ("waiting", "running", "queued") and time.monotonic() < deadline
        time.sleep(0.02)


# --- and after all this ---


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_bounded(server: SyncServerProcess, client: httpx.Client) -> None:
    """The same hostile bodies over and over leave nothing behind."""

    def resident_kib() -> int:
        lines = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def storm(turn: int) -> None:
        for body, _ in RAW.values():
            client.post("/api/runs", content=body, headers=JSON)
        for given, _ in [*DOCUMENTS.values()][::3]:
            client.post("/api/validate", json={**given, "description": str(turn)})

    storm(0)
    before = resident_kib()
    for turn in range(1, 3):
        storm(turn)
    assert resident_kib() - before < MEMORY_GROWTH_MAX_KIB


def test_nothing_of_this_was_a_surprise(server: SyncServerProcess) -> None:
    """Refusals are no errors of ours: the log holds no traceback."""
    log = (server.folder / "log").read_text(encoding="utf-8", errors="replace")
    assert "Traceback" not in log, log[-4000:]

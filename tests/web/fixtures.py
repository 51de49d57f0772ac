"""What the tests of the editor read: the block types, and runs of real workflows as the server tells of them.

`python -m tests.web.fixtures` makes all of it again, in some seconds; test_fixtures.py says when that is due.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson

from executor.blocks.types.registry import Registry
from tests.support.server import SyncServerProcess

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "web" / "test" / "fixtures"
BLOCKS = FOLDER / "blocks.json"
Json = dict[str, Any]

PREVIEW = 65_536  # what the editor asks for
WITHIN_S = 120
# Ids are the same at each recording; times begin at the same moment, and keep their distances.
_ID = re.compile(r"\b[0-9a-f]{32}\b")
_TIME = re.compile(r"\b1[789]\d{11}\b")
T0 = 1_700_000_000_000
# What the machine or the moment decides, in answers to the `http` block and in what is written to the log.
_VARIES = re.compile(r'"(duration_ms|elapsed_ms|date|Date)":("[^"]*"|[\d.]+)')

FAILING: Json = {
    "format": "weft/1",
    "name": "failing",
    "blocks": {
        "start": {"type": "start", "name": "Start", "at": [0, 0]},
        "fan": {
            "type": "parallel",
            "name": "Fan",
            "at": [272, 0],
            "size": [304, 176],
            "params": {"mode": "each", "items": [1, 2, 3, 4], "on_branch_error": "collect"},
        },
        "odd": {
            "type": "function",
            "name": "Odd",
            "parent": "fan",
            "at": [48, 48],
            "params": {"code": 'if (<parallel.item> % 2 === 0) throw new Error("even"); return <parallel.item>;'},
        },
        "many": {
            "type": "loop",
            "name": "Many",
            "at": [640, 0],
            "size": [304, 176],
            "params": {"mode": "for", "count": 140},
        },
        "one": {"type": "set", "name": "One", "parent": "many", "at": [48, 48], "params": {"value": "<loop.index>"}},
        "last": {
            "type": "function",
            "name": "Last",
            "at": [1008, 0],
            "params": {"code": 'throw new Error("broken at the end")'},
        },
    },
    "edges": [
        {"source": "start", "target": "fan"},
        {"source": "fan", "handle": "body", "target": "odd"},
        {"source": "fan", "target": "many"},
        {"source": "many", "handle": "body", "target": "one"},
        {"source": "many", "target": "last"},
    ],
}


def _example(name: str) -> Json:
    found: Json = orjson.loads((ROOT / "examples" / f"{name}.json").read_bytes())
    return found


# By name of the fixture: document, input, and the answers to its waits in order.
RUNS: dict[str, tuple[Json, Json, tuple[str, ...]]] = {
    "nested": (_example("nested"), {"teams": ["red", "green", "blue"], "rounds": 3}, ()),
    "expense-approval": (
        _example("expense-approval"),
        {"amount": 420, "purpose": "Train to the customer", "employee": "ada@example.com"},
        ("approve",),
    ),
    "error-handling": (_example("error-handling"), {}, ()),
    "parallel-fanout": (_example("parallel-fanout"), {"cities": ["Berlin", "Lima", "Osaka", "Accra", "Perth"]}, ()),
    "review-loop": (_example("review-loop"), {"topic": "x"}, ("revise", "revise", "pass")),
    "failing": (FAILING, {}, ()),
}


def block_types() -> bytes:
    return json.dumps({"blocks": Registry.load().catalogue()}, indent=1, ensure_ascii=False).encode() + b"\n"


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


@contextmanager
def server() -> Iterator[httpx.Client]:
    """A server of its own, which answers the calls of its workflows itself."""
    with tempfile.TemporaryDirectory() as folder:
        process = SyncServerProcess(Path(folder), {})
        try:
            with httpx.Client(base_url=process.url, headers={"Accept": "application/json"}, timeout=60) as client:
                yield client
        finally:
            process.stop()


def record(client: httpx.Client, name: str) -> Json:
    """Run it to its end; see `Recorded` in web/test/help.ts."""
    document, input, answers = RUNS[name]
    body = {"document": document, "input": input}
    run = client.post("/api/runs", json=body).raise_for_status().json()["run"]
    for number, action in enumerate(answers, 1):
        wait = _until(lambda: (_get(client, f"/api/waits?run={run}")["waits"] or [None])[0])
        token = wait["link"].split("?")[0].rsplit("/", 1)[1]
        answer = {"action": action, "fields": {"note": f"note {number}"}, "by": "ada"}
        client.post(f"/api/resume/{token}", json=answer).raise_for_status()
    _until(lambda: _get(client, f"/api/runs/{run}")["status"] in ("succeeded", "failed"))
    recorded = {
        "document": _get(client, f"/api/runs/{run}/document")["document"],
        "run": _get(client, f"/api/runs/{run}"),
        "graph": _get(client, f"/api/runs/{run}/graph"),
        "events": _get(client, f"/api/runs/{run}/events?limit=10000&preview={PREVIEW}")["events"],
    }
    return _steady(recorded, str(client.base_url))


def shape(recorded: Json) -> Json:
    """What stays the same from one recording to the next: branches overlap as they like, and a run that is answered at
    once does not park."""
    events = sorted(
        (event["type"], event["key"] or "", sorted(event["data"]))
        for event in recorded["events"]
        if event["type"] != "run.parked"
    )
    nodes = sorted((node["key"], node["status"], sorted(node)) for node in recorded["run"]["nodes"])
    run = {**recorded["run"], "nodes": nodes, "variables": sorted(recorded["run"]["variables"])}
    varies = {
        name: value is not None for name, value in run.items() if name in ("output", "seq") or name.endswith("_ms")
    }
    return {"document": recorded["document"], "events": events, "run": {**run, **varies}, "graph": recorded["graph"]}


def as_text(recorded: Json) -> bytes:
    """One event a line, so that a change can be read."""
    parts = [b'"%s":%s' % (name.encode(), orjson.dumps(recorded[name])) for name in ("document", "run", "graph")]
    events = b",\n".join(orjson.dumps(event) for event in recorded["events"])
    return b"{" + b",\n".join(parts) + b',\n"events":[\n' + events + b"\n]}\n"


def _steady(recorded: Json, url: str) -> Json:
    text = orjson.dumps(recorded).decode().replace(url.rstrip("/"), "http://127.0.0.1:8765")
    text = text.replace(url.partition("//")[2].rstrip("/"), "127.0.0.1:8765")
    ids: dict[str, str] = {}
    text = _ID.sub(lambda found: ids.setdefault(found[0], f"{len(ids) + 1:032x}"), text)
    began = int(recorded["run"]["created_at_ms"])
    text = _TIME.sub(lambda found: str(T0 + int(found[0]) - began), text)
    steady: Json = orjson.loads(_VARIES.sub(r'"\1":1', text))
    return steady


def _get(client: httpx.Client, path: str) -> Any:
    return client.get(path).raise_for_status().json()


def _until(condition: Any) -> Any:
    """Its first answer that counts as true. Raises TimeoutError."""
    end = time.monotonic() + WITHIN_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("a run did not come to where it can be recorded")
        time.sleep(0.02)
    return found


if __name__ == "__main__":
    BLOCKS.write_bytes(block_types())
    with server() as client:
        for name in RUNS:
            found = record(client, name)
            path_of(name).write_bytes(as_text(found))
            sys.stdout.write(f"{name}: {len(found['events'])} events, {found['run']['status']}\n")

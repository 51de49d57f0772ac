"""Pages and streams of events with large outputs: cut where that is asked for, whole everywhere else."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest

from executor.kernel.store.run_rows import Record
from server.http.response import encode_record
from tests.unit.server.api.test_runs import AS_JSON, SSE, frames

Json = dict[str, Any]
LIMIT = 65_536


@pytest.fixture
async def run(client: httpx.AsyncClient) -> Json:
    """Outputs of 10 bytes, 100 KiB (in the row) and 400 KiB (in a blob)."""
    document = {
        "format": "weft/1",
        "name": "large",
        "variables": {"v": None},
        "blocks": {
            "start": {"type": "start"},
            "small": {"type": "set", "params": {"value": "s"}},
            "large": {"type": "set", "params": {"value": "<input.large>"}},
            "huge": {"type": "set", "params": {"value": ["<input.large>"] * 4}},
            "keep": {"type": "variables", "params": {"assign": {"v": "<input.large>"}}},
            "answer": {"type": "response", "params": {"body": "<input.large>"}},
        },
        "edges": [
            {"source": source, "target": target}
            for source, target in [
                ("start", "small"), ("small", "large"), ("large", "huge"), ("huge", "keep"), ("keep", "answer"),
            ]
        ],
    }  # fmt: skip
    accepted = await client.post("/api/runs", json={"document": document, "input": {"large": "x" * 100_000}})
    run = dict(accepted.json())
    await client.get(run["urls"]["events"])
    return run


def outputs(events: list[Json]) -> dict[str, Json]:
    return {event["node"]: event["data"] for event in events if event["type"] == "node.succeeded"}


async def test_a_page_with_previews(client: httpx.AsyncClient, run: Json) -> None:
    url = run["urls"]["events"]
    whole = (await client.get(url, headers=AS_JSON)).json()["events"]
    cut = (await client.get(f"{url}?preview={LIMIT}", headers=AS_JSON)).json()["events"]
    assert [event["seq"] for event in cut] == [event["seq"] for event in whole]
    data = outputs(cut)
    assert data["small"] == outputs(whole)["small"] == {"output": "s"}
    assert data["large"]["output"] is None and data["large"]["truncated"] is True
    assert data["large"]["size"] == 100_002 and data["large"]["preview"] == '"' + "x" * (LIMIT - 1) + "..."
    assert data["huge"]["output"] is None and data["huge"]["truncated"] is True and data["huge"]["size"] > 400_000
    assert "preview" not in data["huge"] and "output" not in outputs(whole)["huge"]
    assert outputs(whole)["large"] == {"output": "x" * 100_000}

    for node in ("large", "huge"):
        full = (await client.get(f"/api/runs/{run['run']}/nodes/{node}")).json()
        assert full["output_size"] == data[node]["size"]
    patched = next(event for event in cut if event["type"] == "variables.patched")
    assert [op[0] for op in patched["data"]["ops"]] == ["set"] and patched["data"]["ops"][0][2] is None
    assert patched["data"]["truncated"] is True and patched["data"]["size"] > 100_000
    end = cut[-1]["data"]
    assert end["status"] == "succeeded" and end["response"] is None and end["output"] is None and end["truncated"]
    assert max(len(orjson.dumps(event)) for event in cut) < LIMIT + 1000


async def test_a_stream_with_previews(client: httpx.AsyncClient, run: Json) -> None:
    url = run["urls"]["events"]
    page = (await client.get(f"{url}?preview={LIMIT}", headers=AS_JSON)).json()["events"]
    for _ in range(2):  # the second time from the cache
        assert frames((await client.get(f"{url}?preview={LIMIT}", headers=SSE)).text) == page
        assert outputs(frames((await client.get(url, headers=SSE)).text))["large"] == {"output": "x" * 100_000}
    tiny = frames((await client.get(f"{url}?preview=0", headers=SSE)).text)
    assert outputs(tiny)["small"] == {"output": None, "preview": "...", "truncated": True, "size": 3}


async def test_pages_of_up_to_ten_thousand(client: httpx.AsyncClient, run: Json) -> None:
    url = run["urls"]["events"]
    everything = (await client.get(f"{url}?limit=10000", headers=AS_JSON)).json()
    assert everything["next"] is None and everything["count"] == len(everything["events"])
    first = (await client.get(f"{url}?limit=4", headers=AS_JSON)).json()
    rest = (await client.get(f"{url}?after={first['next']}&limit=10000", headers=AS_JSON)).json()
    assert first["events"] + rest["events"] == everything["events"]
    assert (first["next"], first["count"]) == (4, everything["count"])
    for query in ("limit=10001", "limit=0", "preview=-1", "preview=x", "preview=99999999999"):
        for accept in (AS_JSON, SSE):
            if accept is SSE and query.startswith("limit"):
                continue  # a stream has no pages
            assert (await client.get(f"{url}?{query}", headers=accept)).status_code == 400, query


@pytest.mark.parametrize("output", [None, b"1", b'{"a":"' + b"y" * 50 + b'"}'])
@pytest.mark.parametrize("data", [None, b"{}", b'{"route":"a"}', b'{"error":{"message":"' + b"z" * 90 + b'"}}'])
def test_what_is_cut_stays_an_event(output: bytes | None, data: bytes | None) -> None:
    record = Record(3, 5, "node.succeeded", "n", "loop#1", 1, data, output)
    whole, cut = (orjson.loads(encode_record("r", record, preview)) for preview in (None, 40))
    assert {**whole, "data": None} == {**cut, "data": None}
    large = len(output or b"") > 40 or len(data or b"") > 40
    assert cut["data"].get("truncated", False) is large
    if not large:
        assert cut == whole
    if data and b"route" in data:
        assert cut["data"]["route"] == "a"
    assert len(encode_record("r", record, 40)) < 260

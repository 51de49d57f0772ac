"""Documents, schemas and patterns that people send: whatever they are, the event loop does not stand still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from executor.blocks.connectors import openapi
from executor.errors import LimitExceeded
from server.app import build_engine, create_app
from server.settings import Settings

Json = dict[str, Any]
STILL_S = 0.25  # half of it is what it takes to read the largest body
WORK_S = 3.0  # of computing, on a slow machine

BASE: Json = {"openapi": "3.0.3", "info": {"title": "Any"}, "servers": [{"url": "https://a.example"}]}


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def posts(schemas: Callable[[int], Json], components: Json | None = None, count: int = 60) -> Json:
    """A description of operations with a body each."""
    bodies = [{"content": {"application/json": {"schema": schemas(n)}}} for n in range(count)]
    paths = {f"/p{n}": {"post": {"operationId": f"op{n}", "requestBody": body}} for n, body in enumerate(bodies)}
    return {**BASE, "paths": paths, "components": {"schemas": components or {}}}


def fields(make: Callable[[int], Any], count: int = 60) -> Json:
    return {"type": "object", "properties": {f"f{n}": make(n) for n in range(count)}}


def each_other() -> Json:
    schemas = {f"S{n}": fields(partial(lambda n, _: ref(f"S{(n + 1) % 40}"), n)) for n in range(40)}
    return posts(lambda _: ref("S0"), schemas)


def all_of_each_other() -> Json:
    schemas = {f"S{n}": {**fields(lambda k: ref(f"S{k}"), 40), "allOf": [ref("S1")] * 9} for n in range(40)}
    return posts(lambda _: ref("S0"), schemas)


def inline() -> Json:
    leaf = {"type": "string", "description": "x" * 20}
    deep = fields(lambda _: fields(lambda _: fields(lambda _: leaf, 6), 6), 6)
    return posts(lambda n: {"type": "object", "properties": {f"f{n}_{k}": deep for k in range(8)}})


def wide() -> Json:
    return posts(lambda _: fields(lambda _: {"allOf": [ref("big")]}), {"big": fields(lambda _: {}, 100_000)})


def long_lists() -> Json:
    big = {"type": "string", "nullable": True, "enum": [f"aaaaaaa{n}" for n in range(300_000)]}
    return posts(lambda _: fields(lambda _: {"allOf": [ref("big")]}), {"big": big})


def one_name() -> Json:
    description = posts(lambda _: {})
    for n, item in enumerate(description["paths"].values()):
        listed = [{"name": "a" + "-" * k, "in": "query", "schema": {"maxLength": n * 60 + k}} for k in range(60)]
        item["post"]["parameters"] = listed
    return description


def one_id() -> Json:
    return {**BASE, "paths": {f"/p{n}": {"get": {"operationId": "x"}} for n in range(5_000)}}


def chains() -> Json:
    schemas = {f"S{n}": ref(f"S{n + 1}") for n in range(30)}
    return {**BASE, "paths": {f"/p{n}": ref("S0") for n in range(50_000)}, "components": {"schemas": schemas}}


def patterns() -> Json:
    return posts(lambda n: fields(lambda k: {"type": "string", "pattern": "[a]" * 300 + f"{n}-{k}"}))


HOSTILE = [each_other, all_of_each_other, inline, wide, long_lists, one_name, one_id, chains, patterns]


@asynccontextmanager
async def server(path: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(db_path=str(path / "weft.db"), secret_key="a secret for tests only")
    engine = await build_engine(settings)
    try:
        transport = httpx.ASGITransport(app=create_app(settings, engine))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765", timeout=120) as client:
            yield client
    finally:
        await engine.close()


async def still_s(work: Any) -> tuple[Any, float]:
    """What it returns, and the longest time that the event loop computed without a look at other tasks."""
    longest, ended = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not ended:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - before)

    watching = asyncio.create_task(watch())
    try:
        found = await work
    finally:
        ended = True
        await watching
    return found, longest


@pytest.mark.parametrize("make", HOSTILE)
def test_reading_a_hostile_description_is_bounded(make: Callable[[], Json]) -> None:
    description = openapi.parse(orjson.dumps(make()))
    chosen = [f"op{n}" for n in range(50)]
    began = time.process_time()
    with pytest.raises(LimitExceeded) as caught:
        openapi.operations(description)
        openapi.connector(description, chosen)
    assert time.process_time() - began < WORK_S
    assert caught.value.code == "openapi_too_large" and caught.value.hint


def test_twice_the_operations_cost_twice_the_time() -> None:
    """Of an honest description: operations share schemas, which are read once."""

    def cost(count: int) -> float:
        record = fields(lambda n: ref("Owner") if n % 10 == 0 else {"type": "string", "description": "A text."}, 40)
        schemas = {"Record": record, "Owner": fields(lambda _: {})}
        description = posts(lambda _: fields(lambda _: ref("Record"), 2), schemas, 50)
        chosen = [f"op{n}" for n in range(count)]
        times = []
        for _ in range(5):
            began = time.process_time()
            made = openapi.connector(description, chosen)
            times.append(time.process_time() - began)
        assert len(made["operations"]) == count
        return min(times)

    half, whole = cost(20), cost(40)
    assert whole / half < 3, (half, whole)


async def test_a_large_honest_description_still_works(tmp_path: Path) -> None:
    """A thousand operations over 400 schemas, 2.7 MB."""
    kinds = [{"type": "string", "description": "Lorem ipsum. " * 16}, {"type": "integer"}, {"type": "boolean"}]

    def part(n: int, k: int) -> Json:
        return ref(f"R{(n + k) % 400}") if k % 9 == 8 else kinds[k % 3]

    schemas = {f"R{n}": fields(partial(part, n), 30) for n in range(400)}
    answers = [{"200": {"content": {"application/json": {"schema": ref(f"R{n % 400}")}}}} for n in range(1_000)]
    description = posts(lambda n: fields(lambda k: kinds[k % 3], 12), schemas, 1_000)
    for item, responses in zip(description["paths"].values(), answers, strict=True):
        item["post"]["responses"] = responses
    data = orjson.dumps(description)
    assert len(data) > 2_500_000
    async with server(tmp_path) as client:
        body = {"description": description, "operations": [f"op{n}" for n in range(50)]}
        response, still = await still_s(client.post("/api/connectors/openapi", json=body))
    assert response.status_code == 200, response.text
    made = response.json()["connector"]["operations"]
    assert len(response.json()["operations"]) == 1_000 and len(made) == 50
    assert made["op7"]["output"]["properties"]["f0"]["type"] == "string"
    assert still < STILL_S


@pytest.mark.parametrize("make", [each_other, patterns, chains])
async def test_an_import_of_a_description_leaves_the_event_loop_alone(tmp_path: Path, make: Callable[[], Json]) -> None:
    async with server(tmp_path) as client:
        body = {"description": make(), "operations": [f"op{n}" for n in range(50)]}
        response, still = await still_s(client.post("/api/connectors/openapi", json=body))
    assert response.status_code == 413 and response.json()["code"] == "openapi_too_large", response.text
    assert still < STILL_S


def sim(**params: str) -> Json:
    """A workflow of Sim with one block."""
    values = {name: {"id": name, "type": "code", "value": value} for name, value in params.items()}
    block = {"id": "b0", "type": "function", "name": "B", "position": {"x": 0, "y": 0}, "subBlocks": values}
    return {"blocks": {"b0": {**block, "enabled": True, "outputs": {}}}, "edges": [], "loops": {}, "parallels": {}}


async def test_an_import_from_sim_leaves_the_event_loop_alone(tmp_path: Path) -> None:
    document = sim(code="<b1.x>" * 150_000)
    async with server(tmp_path) as client:
        response, still = await still_s(client.post("/api/drafts", json={"document": document}))
        assert response.status_code == 201, response.text
        assert still < STILL_S
        response, still = await still_s(client.post("/api/validate", json=document))
        assert response.status_code == 200, response.text
    assert still < STILL_S


async def test_a_schema_that_takes_long_leaves_the_event_loop_alone(tmp_path: Path) -> None:
    """Of the input of a run, and of the answer to a form, which strangers send."""
    many = {"type": "array", "items": {"allOf": [{"type": "integer", "minimum": n} for n in range(-700, 0)]}}
    schema = {"type": "object", "properties": {"a": many}}
    blocks = {"start": {"type": "start"}, "ask": {"type": "form", "params": {"title": "t", "fields": schema}}}
    edges = [{"source": "start", "target": "ask"}]
    asking = {"format": "weft/1", "name": "asks", "blocks": blocks, "edges": edges}
    value = {"a": list(range(20_000))}
    async with server(tmp_path) as client:
        body = {"document": {**asking, "input": schema}, "input": value}
        response, still = await still_s(client.post("/api/runs", json=body))
        assert response.json().get("code") == "check_took_too_long", response.text
        assert still < STILL_S
        run = (await client.post("/api/runs?wait=60", json={"document": asking})).json()
        answer = client.post(f"/api/runs/{run['run']}/waits/ask", json={"fields": value})
        response, still = await still_s(answer)
    assert response.json().get("code") == "check_took_too_long", response.text
    assert still < STILL_S

"""Traces as a collector gets them: a real server on loopback that decodes what arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from executor.kernel.process.tracing import attempt_span, node_span, run_span, trace_id
from executor.open.engine import Engine
from executor.service.telemetry import exporter
from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.documents import in_a_row, value
from tests.support.endpoints import Request, Server, answer, http
from tests.support.until import until

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Received:
    """Spans by id, as hexadecimal text; `times`: how often each came."""

    def __init__(self) -> None:
        self.spans: dict[str, Any] = {}
        self.times: dict[str, int] = {}
        self.headers: list[dict[str, str]] = []
        self.resources: list[Any] = []
        self.status = 200
        self.refused = b""  # traces with this text
        self.refusals = 0

    def handle(self, request: Request) -> bytes:
        assert request.target == "/v1/traces"
        if self.status != 200 or (self.refused and self.refused in request.body):
            self.refusals += 1
            return answer(self.status if self.status != 200 else 400)
        self.headers.append(request.headers)
        message = ExportTraceServiceRequest()
        message.ParseFromString(request.body)
        for resource in message.resource_spans:
            self.resources.append(resource.resource)
            for scope in resource.scope_spans:
                for span in scope.spans:
                    id = span.span_id.hex()
                    self.spans[id] = span
                    self.times[id] = self.times.get(id, 0) + 1
        return answer(200, b"", content_type="application/x-protobuf")


@pytest.fixture
def settings(tmp_path: Any) -> Settings:
    return Settings(
        db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only", allow_private=("127.0.0.1",)
    )


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[Received, Server]]:
    received = Received()
    async with http(received.handle) as server:
        yield received, server


@asynccontextmanager
async def traced(settings: Settings, server: Server) -> AsyncIterator[Engine]:
    engine = await build_engine(replace(settings, otlp_endpoint=server.url, otlp_headers="x-team=weft"))
    try:
        yield engine
    finally:
        await engine.close()


def document(url: str, **more: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "calls",
        "blocks": {"start": {"type": "start"}, "ask": {"type": "http", "params": {"url": url, **more}}},
        "edges": [{"source": "start", "target": "ask"}],
    }


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


async def test_a_run_is_a_trace_with_its_nodes_and_attempts(settings: Settings) -> None:
    asked: list[str | None] = []

    def service(request: Request) -> bytes:
        asked.append(request.headers.get("traceparent"))
        return answer(200, b"{}")

    async with collector() as (received, server), http(service) as called, traced(settings, server) as engine:
        run = (await engine.submit(document(called.url))).run
        await engine.wait_finished(run, 30)
        await until(lambda: attempt_span(run, "ask", 1) in received.spans)
        trace = trace_id(run)
        spans = received.spans
        assert {span.trace_id.hex() for span in spans.values()} == {trace}
        root, node, attempt = (
            spans[run_span(run)],
            spans[node_span(run, "ask")],
            spans[attempt_span(run, "ask", 1)],
        )
        assert (root.parent_span_id, node.parent_span_id.hex()) == (b"", run_span(run))
        assert attempt.parent_span_id.hex() == node_span(run, "ask")
        assert root.name == "run calls" and attributes(node)["weft.block_type"] == "http"
        row = await engine.runs.row(run)
        assert root.start_time_unix_nano == row.created_at_ms * 1_000_000
        assert root.end_time_unix_nano == (row.finished_at_ms or 0) * 1_000_000
        assert root.start_time_unix_nano <= attempt.start_time_unix_nano <= attempt.end_time_unix_nano
        assert asked == [f"00-{trace}-{attempt_span(run, 'ask', 1)}-01"], "what is called is below the attempt"
        assert received.headers[0]["x-team"] == "weft"
        resource = attributes(received.resources[0])
        assert (resource["service.name"], resource["service.version"]) == ("weft", version("weft"))
        assert resource["service.instance.id"]
        kinds = SpanProto.SPAN_KIND_INTERNAL, SpanProto.SPAN_KIND_CLIENT
        assert (node.kind, attempt.kind) == kinds


async def test_a_block_keeps_its_own_header_and_without_tracing_there_is_none(settings: Settings) -> None:
    asked: list[str | None] = []

    def service(request: Request) -> bytes:
        asked.append(request.headers.get("traceparent"))
        return answer(200, b"{}")

    async with collector() as (_, server), http(service) as called, traced(settings, server) as engine:
        own = document(called.url, headers={"Traceparent": PARENT})
        await engine.wait_finished((await engine.submit(own)).run, 30)
    quiet = await build_engine(settings)
    await quiet.wait_finished((await quiet.submit(document(called.url))).run, 30)
    await quiet.close()
    assert asked[:1] == [PARENT] and set(asked[1:]) <= {None}


async def test_failures_and_retries_are_errors(settings: Settings) -> None:
    async with collector() as (received, server), traced(settings, server) as engine:
        fails = {
            "format": "weft/1",
            "name": "fails",
            "blocks": {
                "start": {"type": "start"},
                "boom": {
                    "type": "http",
                    "params": {"url": "http://127.0.0.1:9/"},
                    "policy": {"retry": {"max_attempts": 2, "base_ms": 1}},
                },
            },
            "edges": [{"source": "start", "target": "boom"}],
        }
        run = (await engine.submit(fails)).run
        await engine.wait_finished(run, 60)
        await until(lambda: run_span(run) in received.spans and attempt_span(run, "boom", 2) in received.spans)
        root, last = received.spans[run_span(run)], received.spans[attempt_span(run, "boom", 2)]
        assert (root.status.code, last.status.code) == (2, 2) and last.status.message
        assert attributes(last)["weft.attempt"] == 2 and attributes(last)["error.type"]
        assert last.name == "boom (attempt 2)"


async def test_a_child_run_is_below_the_attempt_that_started_it(settings: Settings) -> None:
    child = {
        "format": "weft/1",
        "name": "child",
        "blocks": {"start": {"type": "start"}, "done": {"type": "set", "params": {"value": 1}}},
        "edges": [{"source": "start", "target": "done"}],
    }
    parent = {
        "format": "weft/1",
        "name": "parent",
        "blocks": {"start": {"type": "start"}, "call": {"type": "run_workflow", "params": {"workflow": "child"}}},
        "edges": [{"source": "start", "target": "call"}],
    }
    async with collector() as (received, server), traced(settings, server) as engine:
        await engine.workflows.save(child)
        app = create_app(settings, engine)
        base = "http://127.0.0.1:8765"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=base) as client:
            sent = await client.post("/api/runs", json={"document": parent}, headers={"traceparent": PARENT})
            run = sent.json()["run"]
        await engine.wait_finished(run, 30)
        await until(
            lambda: {"POST /api/runs", "run parent", "run child"} <= {span.name for span in received.spans.values()}
        )
        by_name = {span.name: span for span in received.spans.values()}
        assert {span.trace_id.hex() for span in received.spans.values()} == {PARENT.split("-")[1]}
        assert by_name["run parent"].parent_span_id == by_name["POST /api/runs"].span_id
        assert by_name["POST /api/runs"].parent_span_id.hex() == PARENT.split("-")[2]
        assert by_name["run child"].parent_span_id.hex() == attempt_span(run, "call", 1)


async def test_a_collector_that_was_away_and_a_process_that_was_killed(settings: Settings, hello: Any) -> None:
    async with collector() as (received, server):
        received.status = 400
        async with traced(settings, server) as engine:
            run = (await engine.submit(hello)).run
            await engine.wait_finished(run, 30)
            await until(lambda: len(server.seen) >= 1)
            assert received.spans == {}
        received.status = 200
        async with traced(settings, server):  # the next process finds what the one before did not send
            await until(lambda: run_span(run) in received.spans)
        once = {id: span.SerializeToString() for id, span in received.spans.items()}
        async with traced(settings, server):
            await until(lambda: received.times[run_span(run)] >= 2)
            await until(lambda: min(received.times.values()) >= 2)
        assert {id: span.SerializeToString() for id, span in received.spans.items()} == once, "the same spans again"


async def test_a_trace_that_the_collector_refuses_does_not_hold_up_the_others(
    settings: Settings, hello: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exporter, "RETRY_S", 0.05)
    async with collector() as (received, server), traced(settings, server) as engine:
        received.refused = b"poison"
        bad = (await engine.submit({**hello, "name": "poison"})).run
        await engine.wait_finished(bad, 30)
        await until(lambda: received.refusals >= 1)
        tracing = engine.parts.services.tracing
        assert tracing is not None
        while tracing.ended:  # others between its refusals
            run = (await engine.submit(hello)).run
            await engine.wait_finished(run, 30)
            await until(partial(received.times.__contains__, run_span(run)))
            await asyncio.sleep(0.01)
        assert run_span(bad) not in received.spans and received.refusals >= exporter.REFUSALS_MAX
        assert f"not that of run {bad}, which is left out" in caplog.text


@pytest.fixture
def hello() -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "hello",
        "blocks": {"start": {"type": "start"}, "greet": {"type": "set", "params": {"value": "hello"}}},
        "edges": [{"source": "start", "target": "greet"}],
    }


async def test_what_has_ended_of_an_open_run_is_exported_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits for a person, and the rest when it has ended; a collector that was away gets it later."""
    monkeypatch.setattr(exporter, "OPEN_S", 0.05)
    monkeypatch.setattr(exporter, "RETRY_S", 0.05)
    ask = {"type": "approval", "params": {"title": "Go?"}}
    asks = in_a_row("asks", {"before": value(1), "ask": ask, "after": value(2)})
    async with collector() as (received, server), traced(settings, server) as engine:
        received.status = 400
        run = (await engine.submit(asks)).run
        await until(lambda: received.refusals >= 2)
        received.status = 200
        await until(lambda: node_span(run, "before") in received.spans)
        assert received.spans[node_span(run, "before")].trace_id.hex() == trace_id(run)
        open_ones = {run_span(run), node_span(run, "ask"), node_span(run, "after")}
        assert (await engine.runs.view(run)).status == "waiting" and not open_ones & received.spans.keys()
        await engine.answer(run=run, node="ask", action="approve")
        await engine.wait_finished(run, 30)
        await until(lambda: open_ones <= received.spans.keys())
        assert set(received.times.values()) == {1}
        whole = {span.id for span in (await engine.traces.of(await engine.runs.row(run))).spans}
        assert received.spans.keys() == whole


async def test_a_request_with_a_traceparent_is_a_span(settings: Settings, hello: Any) -> None:
    """It is below that of its caller, and above the run that it starts; others have none."""
    async with collector() as (received, server), traced(settings, server) as engine:
        app = create_app(settings, engine)
        base = "http://127.0.0.1:8765"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=base) as client:
            sent = await client.post("/api/runs?wait=20", json={"document": hello}, headers={"traceparent": PARENT})
            await client.get("/api/runs")
            missing = await client.get("/api/runs/none", headers={"traceparent": PARENT})
        run = sent.json()["run"]
        names = {"POST /api/runs", "GET /api/runs/{id}", "run hello"}
        await until(lambda: names <= {span.name for span in received.spans.values()})
        by_name = {span.name: span for span in received.spans.values()}
        post, get = by_name["POST /api/runs"], by_name["GET /api/runs/{id}"]
        assert by_name.keys() - names <= {"start", "greet"}, "a request without the header has no span"
        assert {post.trace_id.hex(), get.trace_id.hex()} == {PARENT.split("-")[1]}
        assert {post.parent_span_id.hex(), get.parent_span_id.hex()} == {PARENT.split("-")[2]}
        assert received.spans[run_span(run)].parent_span_id == post.span_id
        assert (post.kind, get.kind) == (SpanProto.SPAN_KIND_SERVER, SpanProto.SPAN_KIND_SERVER)
        assert missing.status_code == 404
        assert attributes(get) == {
            "http.request.method": "GET",
            "http.route": "/api/runs/{id}",
            "http.response.status_code": 404,
        }
        assert attributes(post)["http.response.status_code"] == sent.status_code
        assert post.start_time_unix_nano <= post.end_time_unix_nano

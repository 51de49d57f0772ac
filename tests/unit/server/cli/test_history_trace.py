"""`weft trace`: the tree, and the same spans that a server exports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from executor.kernel.process.tracing import attempt_span, node_span, run_span, trace_id
from executor.open.engine import Engine
from tests.support.endpoints import Request, answer, http


async def test_the_tree_of_a_run(weft: Callable[..., Any], engine: Engine, hello: dict[str, Any]) -> None:
    run = (await engine.submit(hello, input={})).run
    await engine.wait_finished(run, 30)
    lines = (await weft("trace", run)).output.splitlines()
    assert re.match(r"run hello +\|#+ *\| +\d+ ms  succeeded$", lines[0])
    assert [re.match(r"  (start|greet) +\| *#+ *\| +\d+ ms  succeeded$", line)[1] for line in lines[1:]] == [  # type: ignore[index]
        "start",
        "greet",
    ]


async def test_what_failed_says_why(weft: Callable[..., Any], engine: Engine) -> None:
    document = {
        "format": "weft/1",
        "name": "fails",
        "blocks": {
            "start": {"type": "start"},
            "boom": {"type": "function", "params": {"code": "throw new Error('no paper')"}},
        },
        "edges": [{"source": "start", "target": "boom"}],
    }
    run = (await engine.submit(document, input={})).run
    await engine.wait_finished(run, 30)
    [line] = [line for line in (await weft("trace", run)).output.splitlines() if line.strip().startswith("boom ")]
    assert "failed" in line and "no paper" in line


async def test_it_has_the_ids_of_the_trace_that_a_server_exports(
    weft: Callable[..., Any], engine: Engine, hello: dict[str, Any]
) -> None:
    run = (await engine.submit(hello, input={})).run
    await engine.wait_finished(run, 30)
    seen: list[bytes] = []

    def collect(request: Request) -> bytes:
        seen.append(request.body)
        return answer(200)

    async with http(collect) as collector:
        sent = await weft("trace", run, "--otlp", collector.url)
        assert sent.exit_code == 0, sent.output
    message = ExportTraceServiceRequest()
    message.ParseFromString(seen[0])
    spans = [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]
    own = await engine.traces.of(await engine.runs.row(run))
    assert {(span.trace_id.hex(), span.span_id.hex()) for span in spans} == {(own.id, span.id) for span in own.spans}
    assert own.id == trace_id(run)
    wanted = {run_span(run), node_span(run, "greet"), attempt_span(run, "greet", 1)}
    assert wanted <= {span.id for span in own.spans}
    shown = json.loads((await weft("trace", run, "--json")).output)
    assert [span["id"] for span in shown["spans"]] == [span.id for span in own.spans]


async def test_a_collector_that_refuses_is_an_error(
    weft: Callable[..., Any], engine: Engine, hello: dict[str, Any], client: httpx.AsyncClient
) -> None:
    run = (await engine.submit(hello, input={})).run
    await engine.wait_finished(run, 30)
    async with http(lambda _: answer(400)) as collector:
        refused = await weft("trace", run, "--otlp", collector.url)
    assert refused.exit_code != 0
    assert (await weft("trace", "none")).exit_code != 0

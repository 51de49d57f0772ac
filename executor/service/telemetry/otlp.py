"""Spans to a collector, by OTLP over HTTP. Loaded with the first export; needs the extra `otel`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from executor.kernel.process.tracing import Served
from executor.service.telemetry.spans import Span, Trace

BATCH: Final = 512  # spans of one request
TIMEOUT_S: Final = 10.0
# With OTEL_RESOURCE_ATTRIBUTES and an id of the process.
_RESOURCE: Final = Resource.create(
    {"service.name": os.environ.get("OTEL_SERVICE_NAME", "weft"), "service.version": version("weft")}
)
_CALLS: Final = ("http", "email", "sql", "redis", "connector.")  # block types whose attempts call a service
_SCOPE: Final = InstrumentationScope("weft")


class Collector:
    """The collector of traces. Its methods block: call them in a thread."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        self._exporter = OTLPSpanExporter(endpoint=endpoint, headers=dict(headers), timeout=TIMEOUT_S)

    def export(self, trace: Trace) -> bool:
        """Export the spans that have ended. Returns False if the collector did not take all of them."""
        spans = [readable(trace, span) for span in trace.spans if span.end_ms is not None]
        for first in range(0, len(spans), BATCH):
            if self._exporter.export(spans[first : first + BATCH]) is not SpanExportResult.SUCCESS:
                return False
        return True

    def export_requests(self, requests: Sequence[Served]) -> bool:
        spans = [_of_request(each) for each in requests]
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """End an export that is being tried again."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call,unused-ignore]


def readable(trace: Trace, span: Span) -> ReadableSpan:
    failed = span.status == "failed"
    error = span.error or {}
    attributes = dict(span.attributes)
    if span.status != "succeeded":
        attributes["weft.status"] = span.status
    if error:
        attributes["error.type"] = str(error.get("code", "failed"))
    if trace.left_out and span.kind == "run":
        attributes["weft.spans_left_out"] = trace.left_out
    linked = trace.link if span.kind == "run" else None
    assert span.end_ms is not None
    return ReadableSpan(
        name=span.name,
        context=_context(trace.id, span.id),
        parent=None if span.parent is None else _context(trace.id, span.parent, is_remote=span.kind == "run"),
        resource=_RESOURCE,
        attributes=attributes,
        events=[Event(name, about, at_ms * 1_000_000) for at_ms, name, about in span.events],
        links=[] if linked is None else [Link(_context(*linked, is_remote=True))],
        kind=SpanKind.CLIENT if _calls(span) else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, str(error.get("message", ""))) if failed else Status(StatusCode.UNSET),
        start_time=span.start_ms * 1_000_000,
        end_time=max(span.start_ms, span.end_ms) * 1_000_000,
        instrumentation_scope=_SCOPE,
    )


def _of_request(request: Served) -> ReadableSpan:
    attributes: dict[str, str | int] = {
        "http.request.method": request.method,
        "http.route": request.route,
        "http.response.status_code": request.status,
    }
    failed = request.status >= 500
    if failed:
        attributes["error.type"] = str(request.status)
    return ReadableSpan(
        name=f"{request.method} {request.route}",
        context=_context(request.caller.trace, request.span),
        parent=_context(*request.caller, is_remote=True),
        resource=_RESOURCE,
        attributes=attributes,
        kind=SpanKind.SERVER,
        status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
        start_time=request.start_ms * 1_000_000,
        end_time=max(request.start_ms, request.end_ms) * 1_000_000,
        instrumentation_scope=_SCOPE,
    )


def _calls(span: Span) -> bool:
    if span.kind == "attempt":
        return str(span.attributes.get("weft.block_type", "")).startswith(_CALLS)
    return span.attributes.get("weft.step.kind") == "model"


def _context(trace: str, span: str, is_remote: bool = False) -> SpanContext:
    return SpanContext(int(trace, 16), int(span, 16), is_remote, TraceFlags(TraceFlags.SAMPLED))

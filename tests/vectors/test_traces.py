"""Spans of an open run are exported in parts."""

from __future__ import annotations

import random

from executor.service.telemetry.spans import Sent, TracedRun, TraceMaker
from tests.vectors import streams


def test_the_parts_of_a_trace_are_the_whole() -> None:
    """Wherever a journal is cut, nothing is missing and nothing comes twice."""
    cuts = random.Random(7)
    for stream in streams.load():
        # Many have the same time.
        entries = [streams.entry({**event, "at_ms": event["at_ms"] // 5000}) for event in stream["events"]]
        sent, ids = Sent(), list[str]()
        for upto in [*sorted(cuts.sample(range(len(entries)), min(40, len(entries)))), len(entries)]:
            maker = TraceMaker(TracedRun("r", "flow", 1, "running", 0, None))
            for entry in entries[:upto]:
                maker.add(entry)
            whole = maker.trace()
            part = sent.rest_of(whole)
            sent = sent.then(part)
            ids += [span.id for span in part.spans if span.end_ms is not None]
        assert len(ids) == len(set(ids)) and set(ids) == {span.id for span in whole.spans if span.end_ms is not None}

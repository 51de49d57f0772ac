"""Every event comes back from its record as it went in, and a plain one takes no room."""

from __future__ import annotations

import pytest

from executor.kernel.core import events as e
from executor.kernel.journal.codec import Codec
from tests.unit.executor.kernel.core.story import Story, loop

STORY = Story({"go": "l", "l": loop({"a": ""})})
KEY = (((1, 3),), STORY.number("a"))
ERROR = e.ErrorInfo("boom", "it broke", True, "a", "mend it")


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (e.NodeSucceeded(KEY, 1), None),
        (e.NodeSucceeded(KEY, 1, cached=True), b'{"cached":true}'),
        (e.NodeSucceeded(KEY, 2, "yes"), b'{"route":"yes"}'),
        (e.RetryScheduled(KEY, 1, 5, ERROR), None),
        (e.RetryHastened(KEY, 2, 1_000), b'{"due_ms":1000}'),
        (e.WaitOpened(KEY, 1, "attention"), b'{"kind":"attention"}'),
        (e.RunForked("abc", 7), b'{"source":"abc","seq":7}'),
        (e.RunMigrated(3, "f00"), b'{"version":3,"plan_hash":"f00"}'),
        (e.NodeSkipped(KEY, "pruned", ((), 0)), None),
    ],
)
def test_events_and_records(event: e.Event, data: bytes | None) -> None:
    codec = Codec(STORY.plan)
    record = codec.to_record(1, 2, event)
    assert Codec(STORY.plan).to_event(record) == event
    if data is not None or type(event) is e.NodeSucceeded:
        assert record.data == data

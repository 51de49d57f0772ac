"""What the event that decided a node says, in words."""

from __future__ import annotations

from executor.kernel.core.events import ErrorInfo, Event, NodeFailed, NodeSkipped, NodeStarted, NodeSucceeded
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.projection import decision
from executor.service.topics.history import led_to, reasons
from tests.unit.executor.kernel.core.story import Story


def test_what_decided_a_node_says_how() -> None:
    s = Story({"a": "b", "b": ""})
    here, last = ((), s.number("b")), ((), s.number("a"))

    def said(event: Event) -> tuple[str, tuple[str, ...]] | None:
        record = Codec(s.plan).to_record(1, 0, event)
        decided = decision(record.type, data_of(record))
        return None if decided is None else (decided.status, reasons(s.plan, event))

    events = (
        NodeSucceeded(here, 1, "yes", reused=True, cached=True),
        NodeSucceeded(here, 1, None),
        NodeSkipped(here, "expired"),
        NodeSkipped(here, "pruned", last),
        NodeFailed(here, 1, ErrorInfo("boom", "it broke")),
        NodeFailed(here, 1, ErrorInfo("cancelled", "no")),
        NodeStarted(here, 1),
    )
    assert [said(event) for event in events] == [
        (
            "succeeded",
            (
                "its output is reused from an earlier run",
                "its output comes from the cache",
                "it took branch 'yes'",
            ),
        ),
        ("succeeded", ("attempt 1 succeeded", "no case was true, so no branch was taken")),
        ("skipped", ("it expired without an answer, so it was skipped and its output is null",)),
        ("skipped", ("no branch led here: the last possible path ended at 'a'",)),
        ("failed", ("boom: it broke",)),
        ("cancelled", ("cancelled: no",)),
        None,
    ]


def test_a_live_edge_leads_to_the_node_behind_it() -> None:
    s = Story({"if": "yes:b no:c", "b": "d", "c": "", "d": ""})

    def causes(event: Event) -> list[tuple[str, str]]:
        record = Codec(s.plan).to_record(1, 0, event)
        found = led_to(s.plan, event, decision(record.type, data_of(record)))
        return [(s.plan.nodes[number].id, cause) for (_, number), cause in found]

    assert causes(NodeSucceeded(((), s.number("if")), 1, "yes")) == [("b", "'if' took branch 'yes'")]
    assert causes(NodeSucceeded(((), s.number("if")), 1, None)) == []
    assert causes(NodeSkipped(((), s.number("b")), "skip_if")) == [("d", "'b' was skipped")]
    assert causes(NodeSkipped(((), s.number("c")), "pruned")) == []

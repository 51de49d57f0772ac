"""The tools that the visitor of a chat sees: names and states, and of the agents that answer alone."""

from __future__ import annotations

from typing import Any

import orjson

from executor.kernel.store.run_rows import Record
from executor.service.topics.chat_tools import ChatTool, ToolCalls


class Journal:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def began(self, n: int, name: str, kind: str = "tool", node: str = "agent") -> None:
        self._add("step.started", node, {"n": n, "kind": kind, "name": name, "input_hash": "h", "effect": "read"})

    def ended(self, n: int, node: str = "agent", **data: Any) -> None:
        self._add("step.finished", node, {"n": n, **data})

    def _add(self, type: str, node: str, data: dict[str, Any]) -> None:
        seq = len(self.records) + 1
        self.records.append(Record(seq, seq, type, node, "", 1, orjson.dumps(data)))


def test_calls_of_a_tool_are_one_line_with_its_state() -> None:
    journal = Journal()
    journal.began(0, "openai:gpt", "model")
    journal.ended(0)
    journal.began(1, "find_order")
    journal.began(2, "find_order")
    journal.ended(1)
    journal.ended(2, error={"code": "http_status", "message": "secret"})
    journal.began(3, "approve refund?", "step")
    journal.began(4, "approve refund", "wait")
    journal.began(5, "pack", "wait")  # a workflow
    journal.began(1, "unseen", node="triage")
    calls = ToolCalls(frozenset({"agent"}))
    changed = [calls.apply(record) for record in journal.records]
    assert [one for one in changed if one is not None] == [
        ChatTool("find_order", 1, "working"),
        ChatTool("find_order", 2, "working"),
        ChatTool("find_order", 2, "working"),
        ChatTool("find_order", 2, "failed"),
        ChatTool("pack", 1, "working"),
    ]
    assert calls.tools() == (ChatTool("find_order", 2, "failed"), ChatTool("pack", 1, "working"))


def test_nothing_is_under_way_in_a_run_that_has_ended() -> None:
    journal = Journal()
    journal.began(1, "find_order")
    calls = ToolCalls(frozenset({"agent"}), over=True)
    for record in journal.records:
        calls.apply(record)
    assert calls.tools() == (ChatTool("find_order", 1, "failed"),)

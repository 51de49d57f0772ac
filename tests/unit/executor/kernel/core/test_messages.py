"""Messages in inboxes: what is written, and that every message of earlier versions is still read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from executor.kernel.core import messages as m
from executor.kernel.core.events import ErrorInfo
from tests.support.recorded import SCHEMAS, restore

# As versions before this module wrote them, and what they mean.
WRITTEN: list[tuple[dict[str, Any], m.Known]] = [
    ({"type": "cancel", "reason": "too late"}, m.Cancel("too late")),
    ({"type": "cancel", "reason": ""}, m.Cancel()),
    (
        {"type": "answer", "wait": "ask!1", "fields": {"n": 1}, "action": "approve", "by": "ada", "at_ms": 5},
        m.Answer("ask!1", 5, {"n": 1}, "approve", by="ada"),
    ),
    (
        {"type": "answer", "wait": "ask!1", "fields": {}, "action": None, "by": None, "at_ms": 5, "refused": True},
        m.Answer("ask!1", 5, {}, refused=True),
    ),
    (
        {"type": "answer", "wait": "hook!2", "output": {"body": [1.5]}, "by": None, "at_ms": 5},
        m.Answer("hook!2", 5, output={"body": [1.5]}),
    ),
    (
        {"type": "withdrawn", "wait": "ask!1", "by": "bob", "reason": "", "at_ms": 5},
        m.Withdrawn("ask!1", 5, "bob", ""),
    ),
    ({"type": "expired", "wait": "ask@each[2]!1", "at_ms": 5}, m.Expired("ask@each[2]!1", 5)),
    (
        {"type": "child", "wait": "call!1", "run": "r2", "status": "succeeded", "output": {"a": None}},
        m.ChildEnded("call!1", "r2", "succeeded", msgspec.Raw(b'{"a":null}')),
    ),
    (
        {"type": "child", "wait": "call!1", "run": "r2", "status": "failed", "error": {"code": "c", "message": "m"}},
        m.ChildEnded("call!1", "r2", "failed", error=ErrorInfo("c", "m")),
    ),
    (
        {"type": "child", "wait": "call!1", "run": "r2", "status": "cancelled"},
        m.ChildEnded("call!1", "r2", "cancelled"),
    ),
    ({"type": "signal", "name": "paid"}, m.SignalSent("paid")),
    ({"type": "retry", "key": "send@review#5"}, m.Retry("send@review#5")),
    (
        {"type": "migrate", "version": 2, "plan": "abc", "request": "r"},
        m.Migrate(2, "abc", "r"),
    ),
]


@pytest.mark.parametrize(("written", "meant"), WRITTEN)
def test_what_earlier_versions_wrote_is_read(written: dict[str, Any], meant: m.Known) -> None:
    assert m.decode(orjson.dumps(written)) == meant


@pytest.mark.parametrize(("written", "meant"), WRITTEN)
def test_earlier_versions_can_read_what_is_written(written: dict[str, Any], meant: m.Known) -> None:
    """A field that is left out is one that they read with a default."""
    new = orjson.loads(m.encode(meant))
    assert new.items() <= written.items()
    optional = {"reason", "fields", "action", "output", "by", "refused", "error"}
    assert written.keys() - new.keys() <= optional
    assert not any(written[name] for name in written.keys() - new.keys())


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_message_of_the_golden_databases_is_read(schema: int, tmp_path: Path) -> None:
    with closing(sqlite3.connect(restore(schema, tmp_path))) as db:
        rows = [data for (data,) in db.execute("SELECT fact FROM inbox")]
    assert rows
    for data in rows:
        message = m.decode(data)
        assert not isinstance(message, m.Unknown)
        assert orjson.loads(m.encode(message)).items() <= orjson.loads(data).items()


def test_the_output_of_a_child_is_passed_on_byte_by_byte() -> None:
    output = b'{"pi": 3.14000, "big": 123456789012345678901234567890}'
    data = m.encode(m.ChildEnded("call!1", "r2", "succeeded", msgspec.Raw(output)))
    assert output in data
    ended = m.decode(data)
    assert isinstance(ended, m.ChildEnded)
    assert bytes(ended.output) == output


def test_a_message_of_a_later_version_is_not_taken_for_a_damaged_one() -> None:
    assert m.decode(b'{"type": "teleport", "to": "r2"}') == m.Unknown("teleport")
    for damaged in (b'{"type": "answer"}', b'{"type": "cancel", "reason": 1}', b"{}", b"[]", b"", b'"cancel"'):
        with pytest.raises(msgspec.DecodeError):
            m.decode(damaged)

"""The parts of a process are made once and never exchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import fields

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.read.hub import Hub
from executor.kernel.run.links import Links
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.service.parts import Parts
from tests.support.clock import ManualClock


async def test_parts_cannot_be_exchanged_and_wake_readers_and_owner(tmp_path: Path) -> None:
    services = Services(
        sandbox=Sandbox(threads=1),
        http=GuardedClient(),
        env={"KEY": "s3cret-value"},
        secrets=frozenset({"KEY", "GONE"}),
    )
    parts = Parts.make(
        SQLiteStore(str(tmp_path / "weft.db")),
        registry=Registry([]),
        services=services,
        clock=ManualClock(),
        links=Links(b"0" * 32, "http://127.0.0.1"),
    )
    for field in fields(Parts):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(parts, field.name, getattr(parts, field.name))
    assert isinstance(parts.hub, Hub)
    assert "s3cret-value" not in parts.redactor.redact("it is s3cret-value")
    watched = parts.hub.watch("r")
    parts.wake("r")
    assert watched.done() and parts.owned.due.is_set()
    await services.close()

"""Commands: what goes out. They follow from events (`commands_of`) or, after a crash, from the state
(`outstanding`)."""

from __future__ import annotations

from msgspec import Struct

from compiler.keys import NodeKey
from executor.kernel.core.events import RunEnd


class RunNode(Struct, frozen=True, gc=False):
    key: NodeKey
    attempt: int


class CancelNode(Struct, frozen=True, gc=False):
    """Stop the handler of this attempt; its outcome still comes back as a fact."""

    key: NodeKey


class SetTimer(Struct, frozen=True, gc=False):
    """Deliver TimerFired(key, attempt) at `due_ms`."""

    key: NodeKey
    attempt: int
    due_ms: int


class Park(Struct, frozen=True, gc=False):
    due_ms: int | None


class Finish(Struct, frozen=True, gc=False):
    status: RunEnd


Command = RunNode | CancelNode | SetTimer | Park | Finish

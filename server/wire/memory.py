"""The shapes of the memory of agents."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from executor.kernel.store.topics.memory import MemoryHead
from executor.service.topics.memory import TurnView

Name = Annotated[str, Meta(max_length=1_000)]


class MemoriesQuery(Struct, frozen=True):
    workflow: Annotated[Name | None, Meta(description="Only of this workflow.")] = None


class MemoryQuery(Struct, frozen=True):
    """One conversation: `key` with either `workflow` or `scope`."""

    key: Annotated[Name, Meta(description="Key of the conversation.")] = ""
    workflow: Annotated[Name, Meta(description="The workflow that it belongs to.")] = ""
    scope: Annotated[Name, Meta(description="Or the scope.")] = ""


class MemoryList(Struct, frozen=True):
    """The latest first, at most 200."""

    conversations: list[MemoryHead]


class MemoryTurns(Struct, frozen=True):
    """In their order."""

    turns: list[TurnView]


class MemoryForgotten(Struct, frozen=True):
    """The number of deleted turns."""

    deleted: int

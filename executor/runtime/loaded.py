"""A run in memory: its row, its plan, and what its journal folds to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import orjson

from compiler.keys import NodeKey, parse_key, parse_wait
from compiler.plan import Plan
from executor.core.state import State, Wait
from executor.journal.codec import Codec
from executor.store.rows import RunRow
from executor.values.fold import Fold
from executor.values.scope import Values


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """`row` is as it was claimed; `state` and `fold` are changed by each event."""

    row: RunRow
    plan: Plan
    codec: Codec
    state: State
    fold: Fold

    @classmethod
    def empty(cls, row: RunRow, plan: Plan, env: Mapping[str, str]) -> Self:
        """Before the first event."""
        return cls(row, plan, Codec(plan), State.new(plan), Fold(plan, Values(plan, orjson.loads(row.input), env)))

    @property
    def id(self) -> str:
        return self.row.id

    def open_wait(self, id: str) -> tuple[NodeKey, Wait] | None:
        """None: this wait is closed, though the node may have another one by now."""
        try:
            text, attempt = parse_wait(id)
            key = parse_key(self.plan, text)
        except ValueError:
            return None
        wait = self.state.waits.get(key)
        return None if wait is None or wait.attempt != attempt else (key, wait)

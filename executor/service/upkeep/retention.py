"""The rules for keeping runs: `settings.retention` of the workflow's active version, else the rule for all."""

from __future__ import annotations

from typing import Any, Final

import orjson
from msgspec import Struct

from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import WorkflowRow

DAY_MS: Final = 86_400_000


class Rule(Struct, frozen=True):
    """Runs that ended more than `older_than_ms` ago go, but for the `keep` newest: those of `workflow`, or of all but
    those of `but_not`."""

    older_than_ms: int
    keep: int = 0
    workflow: str | None = None
    but_not: tuple[str, ...] = ()


async def rules_of(store: Store, older_than_ms: int | None, keep: int) -> list[Rule]:
    """Return the rules, those of workflows first. If `older_than_ms` is None, runs of workflows without a rule are
    kept."""
    own = [rule for row in await store.list_workflows() if (rule := _rule_of(row, older_than_ms)) is not None]
    if older_than_ms is None:
        return own
    return [*own, Rule(older_than_ms, keep, None, tuple(rule.workflow for rule in own if rule.workflow is not None))]


def dropped_before(rules: list[Rule], now_ms: int) -> int | None:
    """Return the time before which runs may be deleted by whole days, because no rule keeps any of them, or None."""
    if not rules or rules[-1].workflow is not None or any(rule.keep for rule in rules):
        return None
    return now_ms - max(rule.older_than_ms for rule in rules)


def _rule_of(row: WorkflowRow, older_than_ms: int | None) -> Rule | None:
    if b'"retention"' not in row.document:  # most; the others are read
        return None
    document: Any = orjson.loads(row.document)
    settings = document.get("settings") if isinstance(document, dict) else None
    wanted = settings.get("retention") if isinstance(settings, dict) else None
    if not isinstance(wanted, dict):
        return None
    days, keep = wanted.get("days"), wanted.get("keep") or 0
    if days is None:
        if not keep:
            return None
        return Rule(older_than_ms or 0, keep, row.name)
    return Rule(round(days * DAY_MS), keep, row.name)

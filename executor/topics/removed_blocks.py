"""Block ids that a new version of a workflow lacks and open runs of older versions hold: said when it is stored.

A run holds a block when its journal has a record of it. Such a run ends under the version it has; it cannot be moved
to the new one, where a block under another id is another block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from compiler.diagnostics import Diagnostic
from compiler.imports.ours import as_ours
from executor.errors import CorruptJournal
from executor.journal.reader import load_plan
from executor.store.contract import Store
from executor.store.rows import EventFilter

# The newest open runs of each status. More would take longer to ask for than the warning is worth.
RUNS_MAX: Final = 100
LOOKS_MAX: Final = 1_000


async def removed_blocks(store: Store, workflow: str, document: Mapping[str, Any]) -> list[Diagnostic]:
    """A warning for each block, in the order of their ids."""
    present = as_ours(document).document.get("blocks") or {}
    holders: dict[str, int] = {}
    looks = 0
    for status in ("running", "waiting"):
        for run in await store.list_runs(workflow, status, limit=RUNS_MAX):
            try:
                plan = await load_plan(store, run.plan_hash)
            except CorruptJournal:
                continue  # the version is stored: damage to a run, which the doctor names, is no reason to deny it
            gone = {node.block: node.id for node in plan.nodes if node.block not in present and node.sentinel != "end"}
            for block, node in gone.items():
                looks += 1
                if looks > LOOKS_MAX:
                    return _said(holders, more=True)
                if (await store.find_events(run.id, EventFilter(limit=1, node=node)))[0]:
                    holders[block] = holders.get(block, 0) + 1
    return _said(holders)


def _said(holders: Mapping[str, int], more: bool = False) -> list[Diagnostic]:
    found = []
    for block, count in sorted(holders.items()):
        runs = f"{count}{' or more' if more else ''} open run{'' if count == 1 and not more else 's'}"
        message = f'Block "{block}" was removed, and {runs} used it. They keep their version.'
        hint = "If it is the same block, restore its id and change only its name."
        found.append(Diagnostic("block_dropped", "warning", "/blocks", message, hint))
    return found

"""Workflows that are stored, version by version: compiled, saved, activated, deleted; `engine.workflows`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from compiler.compile import Compiled
from compiler.diagnostics import Diagnostic
from compiler.imports import Imported, not_imported
from compiler.needs import missing_connections
from compiler.plan import Plan
from compiler.setup import Task, tasks
from compiler.tracing.workflow import Composed, called_by, is_composed
from executor.blocks.vault.connection import PREFIX, is_connection, needs_sign_in
from executor.errors import BadRequest, Conflict, CorruptJournal, NotFound
from executor.kernel.journal.reader import load_plan
from executor.kernel.process.acting import present_actor
from executor.kernel.process.threads import aside
from executor.kernel.read.find import find_version
from executor.kernel.run.compiler import plan_of
from executor.kernel.run.imports import as_ours
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.topics.schedules import ScheduleRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.webhooks import WebhookRow
from executor.kernel.store.topics.workflows import (
    Declared,
    DeletedWorkflow,
    Stored,
    VersionRow,
    WorkflowHead,
    WorkflowRow,
)
from executor.service.parts import Parts, Topic
from executor.service.triggers.declared import declared_by, turned_off
from executor.service.triggers.schedules import Scheduler
from executor.service.views import SavedWorkflow

NAME_MAX: Final = 200
UNTITLED: Final = "untitled"  # the name that the editor gives a new draft: no workflow is stored under it
# The newest open runs of each status. More would take longer than the warning is worth.
RUNS_MAX: Final = 100
LOOKS_MAX: Final = 1_000
_OFF_HINT: Final = (
    "Replace what was not imported and deploy again, turn a trigger on by hand, or deploy with --activate-triggers."
)


class Workflows(Topic):
    """A version is stored for ever under its number; runs that name none start the active one."""

    def __init__(self, parts: Parts, scheduler: Scheduler) -> None:
        super().__init__(parts)
        self._scheduler = scheduler
        self._given: list[Composed] = []
        self._called: set[Composed] = set()  # stored already

    async def compile(self, document: Any, trigger: str | None = None) -> Compiled:
        """Return the plan and the diagnostics; never raises for errors of the document."""
        return await self._parts.compiler.compile(document, trigger)

    async def validate(self, document: Any, trigger: str | None = None) -> list[Diagnostic]:
        return [*(await self.compile(document, trigger)).diagnostics, *await self.missing(document)]

    async def setup(self, document: Any, found: Sequence[Diagnostic]) -> tuple[Task, ...]:
        """Return the tasks that are left before a document runs. `found`: what `validate` found in it."""
        if isinstance(document, Mapping) and not str(document.get("format")).startswith("weft/"):
            ours = await self._ours(document)
            if ours.format is not None:  # the findings lead into the source
                document, found = ours.document, await self.validate(ours.document)
        missing = self._parts.services.models.missing
        return await aside(partial(tasks, document, found, self._parts.registry, missing))

    async def missing(self, document: Any) -> list[Diagnostic]:
        """Return diagnostics for the connections that a document names and this server lacks, or that need a sign-in.
        They are read at this moment, because another process may have changed them."""
        data = document if isinstance(document, bytes) else orjson.dumps(document)
        if b'"connection"' not in data:
            return []
        keys = self._parts.vault.keys
        known = {
            row.name.removeprefix(PREFIX): keys is None or not needs_sign_in(keys, row)
            for row in await self._store.list_secrets()
            if is_connection(row)
        }

        def found() -> list[Diagnostic]:
            try:
                read = orjson.loads(data)
            except orjson.JSONDecodeError:
                return []
            return missing_connections(read, self._parts.registry, known)

        return await aside(found)

    async def save(
        self,
        document: Any,
        name: str | None = None,
        *,
        activate_triggers: bool = False,
        replaces: int | None = None,
    ) -> SavedWorkflow:
        """Store it without its pins and make it the active version; the same document is the same version. Workflow
        functions that it calls are stored as well. With blocks that were not imported its schedules and webhooks are
        off, unless `activate_triggers`. `replaces`: the version that may be active before, 0 for none; None does not
        look. Raises CompileError, BadRequest, and Conflict (would_replace, `active`)."""
        if is_composed(document):
            await self.save_called(document)
        if not isinstance(document, Mapping) and hasattr(document, "document"):
            document = document.document()
        document = without_pins(document)
        compiled = await self.compile(document)
        plan = plan_of(compiled)
        name = await self._store.named(_checked(name or plan.name or ""))
        # The hash ignores the order of keys, the stored document does not: forms show fields in their author's order.
        digest = hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
        declared, off = await self._declared(name, document, activate_triggers)
        data, now_ms = orjson.dumps(document), self._clock.now_ms()
        stored = await self._store.put_workflow(name, data, digest, now_ms, declared, present_actor(), replaces)
        return await self._saved(stored, document, compiled, off)

    async def _declared(self, name: str, document: Any, activate: bool) -> tuple[Declared, list[Diagnostic]]:
        declared = await declared_by(self._parts, name, document)
        rows: list[ScheduleRow | WebhookRow] = [*declared.schedules, *declared.webhooks]
        on = sorted(row.trigger or "" for row in rows if row.enabled)
        if activate or not on:
            return declared, []
        ours = await self._ours(document)
        found = not_imported(ours.document)
        what = "a block or a tool was" if len(found) == 1 else f"{len(found)} blocks and tools were"
        what += " not imported"
        if not found and ours.format is not None:
            found = await self.missing(ours.document)
            what = "it has connections that are not there yet"
        if not found:
            return declared, []
        message = f"These triggers are off, because {what}: {', '.join(on)[:200]}."
        return turned_off(declared), [Diagnostic("triggers_off", "warning", "/blocks", message, _OFF_HINT)]

    async def give(self, workflows: Iterable[Composed]) -> None:
        """Add workflows of this program: those that one of them calls are stored. Raises like `save_called`."""
        self._given += workflows
        await self.save_called(*self._given)

    async def save_called(self, *workflows: Composed) -> None:
        """Store the workflow functions that these call, each once. Raises CompileError, BadRequest, DefinitionError."""
        for one in called_by(workflows, self._given).values():
            if one not in self._called:
                self._called.add(one)
                try:
                    await self.save(one)
                except BaseException:
                    self._called.discard(one)
                    raise

    async def version(self, name: str, version: int | None = None) -> WorkflowRow:
        return await find_version(self._store, name, version)

    async def converted(self, document: bytes) -> bytes:
        ours = await self._ours(orjson.loads(document))
        return document if ours.format is None else orjson.dumps(ours.document)

    async def _ours(self, document: Any) -> Imported:
        return await aside(partial(as_ours, document, self._parts.services.names, self._parts.registry))

    async def plan(self, name: str, version: int | None = None, trigger: str | None = None) -> Plan:
        """Return the plan of a run that starts at `trigger` now. Raises NotFound, CompileError."""
        row = await find_version(self._store, name, version)
        return await self._parts.compiler.plan(row.document, trigger)

    async def get(self, name: str) -> WorkflowHead:
        head = await self._store.get_head(await self._store.named(name))
        if head is None:
            raise _not_found(name)
        return head

    async def versions(self, name: str, before: int | None = None, limit: int = 200) -> list[VersionRow]:
        found = await self._store.list_versions(name, before, limit)
        if not found:
            await self.get(name)
        return found

    async def activate(self, name: str, version: int, *, activate_triggers: bool = False) -> SavedWorkflow:
        """Run this version from now on where none is named, with its schedules and webhooks, as in `save`. Raises
        NotFound, CompileError."""
        row = await find_version(self._store, name, version)
        document = orjson.loads(row.document)
        compiled = await self.compile(row.document)
        plan_of(compiled)  # raises CompileError
        declared, off = await self._declared(name, document, activate_triggers)
        stored = await self._store.activate_workflow(name, version, self._clock.now_ms(), declared, present_actor())
        if stored is None:
            raise _not_found(name)
        return await self._saved(stored, document, compiled, off)

    async def _saved(
        self, stored: Stored, document: Any, compiled: Compiled, off: Sequence[Diagnostic]
    ) -> SavedWorkflow:
        self._scheduler.wake()
        row, replaced = stored.row, stored.replaced
        warnings = await _removed_blocks(self._store, row.name, document) if replaced is not None else []
        found = (*compiled.diagnostics, *await self.missing(document), *off, *warnings)
        return SavedWorkflow(row.name, row.version, row.hash, stored.created, found, stored.activated, replaced)

    async def put_in_folder(self, name: str, folder: str) -> None:
        """Show a workflow in a folder of the front page, '' for none. Raises NotFound."""
        if not await self._store.put_in_folder(name, folder):
            raise _not_found(name)

    async def title(self, name: str) -> str:
        """Return what is shown in place of the name."""
        head = await self._store.get_head(name)
        return (head.title if head is not None else "") or name

    async def rename(self, name: str, title: str) -> None:
        """Show this text in place of the name of a workflow, '' for its name, which stays and is found by both. Raises
        NotFound, BadRequest, and Conflict (title_taken)."""
        name = (await self.get(name)).name
        title = "" if title in ("", name) else _checked(title)
        if not await self._store.put_title(name, title):
            hint = "choose another text, or rename or delete that workflow first"
            raise Conflict(f"another workflow is called '{title}'", code="title_taken", hint=hint, pointer="/title")

    async def delete(self, name: str) -> DeletedWorkflow:
        """Delete a workflow with its versions, schedules and webhooks. Runs that have ended stay. Raises NotFound,
        Conflict."""
        deleted = await self._store.delete_workflow(name)
        if deleted is None:
            raise _not_found(name)
        if deleted.open_runs:
            runs = "a run" if deleted.open_runs == 1 else f"{deleted.open_runs} runs"
            raise Conflict(
                f"{runs} of workflow '{name}' {'has' if deleted.open_runs == 1 else 'have'} not ended yet",
                code="workflow_has_open_runs",
                hint="cancel them, or wait until they end",
                open_runs=deleted.open_runs,
            )
        self._scheduler.wake()
        return deleted


def without_pins(document: Any) -> Any:
    """Return a document without its pins, which are for runs of drafts."""
    blocks = document.get("blocks") if isinstance(document, Mapping) else None
    if not isinstance(blocks, dict):
        return document
    bare = {id: {k: v for k, v in b.items() if k != "pin"} if isinstance(b, dict) else b for id, b in blocks.items()}
    return {**document, "blocks": bare}


def _checked(name: str) -> str:
    """Return the name under which a workflow is stored. Raises BadRequest."""
    if name.strip().lower() in ("", UNTITLED):
        what = f"is called {name.strip()!r}, as every new draft is" if name.strip() else "has no name"
        hint = "add `name` to the document or to the request: workflows are found and replaced by their names"
        raise BadRequest(f"the workflow {what}", code="name_missing", pointer="/name", hint=hint)
    if len(name) > NAME_MAX or any(char < " " or char in "/\x7f" for char in name):
        raise BadRequest(
            f"the workflow cannot be stored as {name[:80]!r}",
            code="name_invalid",
            pointer="/name",
            hint=f"names are part of URLs: at most {NAME_MAX} characters, no slash, no control characters",
        )
    return name


def _not_found(name: str) -> NotFound:
    return NotFound(f"there is no workflow '{name}'", code="workflow_not_found")


async def _removed_blocks(store: Store, workflow: str, document: Mapping[str, Any]) -> list[Diagnostic]:
    """Return warnings about blocks that the new version lacks and open runs hold, in the order of their ids. A run
    holds a block when its journal has a record of it. It ends under its own version: it cannot move to one that lacks
    the block, where a block under another id is another block."""
    present = (await aside(partial(as_ours, document))).document.get("blocks") or {}
    holders: dict[str, int] = {}
    looks = 0
    for status in ("running", "waiting"):
        for run in await store.list_runs(workflow, status, limit=RUNS_MAX):
            try:
                plan = await load_plan(store, run.plan_hash)
            except CorruptJournal:
                continue  # the version is stored: damage to a run, which the doctor names, is no reason to deny it
            removed = {
                node.block: node.id for node in plan.nodes if node.block not in present and node.sentinel != "end"
            }
            for block, node in removed.items():
                looks += 1
                if looks > LOOKS_MAX:
                    return _removed(holders, more=True)
                if (await store.find_events(run.id, EventFilter(limit=1, node=node)))[0]:
                    holders[block] = holders.get(block, 0) + 1
    return _removed(holders)


def _removed(holders: Mapping[str, int], more: bool = False) -> list[Diagnostic]:
    found = []
    for block, count in sorted(holders.items()):
        runs = f"{count}{' or more' if more else ''} open run{'' if count == 1 and not more else 's'}"
        message = f'Block "{block}" was removed, and {runs} used it. They keep their version.'
        hint = "If it is the same block, restore its id and change only its name."
        found.append(Diagnostic("block_dropped", "warning", "/blocks", message, hint))
    return found

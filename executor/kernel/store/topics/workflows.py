"""Workflows: versions of documents, and which of them is active."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from executor.errors import Conflict
from executor.kernel.store.statements import Readers, Tx, as_list, columns, those_of
from executor.kernel.store.topics.cache import clear_cache
from executor.kernel.store.topics.drafts import LastRun, unbase_drafts
from executor.kernel.store.topics.memory import forget_workflow
from executor.kernel.store.topics.schedules import ScheduleRow, delete_schedules_of, put_declared_schedules
from executor.kernel.store.topics.webhooks import WebhookRow, delete_webhooks_of, put_declared_webhooks

Order = Literal["run", "changed", "name"]
VERSION_MAX: Final = 2**31 - 1  # of a workflow; a larger number is refused before a database sees it


class WorkflowRow(Struct, frozen=True):
    name: str
    version: int
    hash: str
    document: bytes
    created_at_ms: int


class VersionRow(Struct, frozen=True):
    """A version without its document."""

    version: int
    hash: str
    created_at_ms: int


class WorkflowHead(Struct, frozen=True):
    """A workflow without a document. `version`, `hash` and `created_at_ms` are those of the active version; `newest` is
    the highest version, `versions` their number. `changed_by` made it the active one, if that is known. `title`: shown
    in place of its name, '' for the name."""

    name: str
    version: int
    hash: str
    created_at_ms: int
    activated_at_ms: int
    newest: int
    versions: int
    last_run: LastRun | None = None
    folder: str = ""
    changed_by: str | None = None
    title: str = ""


class CardFacts(Struct, frozen=True):
    """`next_ms`: when its next schedule starts a run. `today`: the runs since a time, at most TODAY_MAX."""

    document: bytes
    next_ms: int | None
    today: int


class ShortRun(Struct, frozen=True):
    """`duration_ms`: from its first start to its end, or null."""

    id: str
    status: str
    created_at_ms: int
    duration_ms: int | None


class Stored(Struct, frozen=True):
    """The version that is active now. `activated`: it was not before; `replaced`: the version that was."""

    row: WorkflowRow
    created: bool
    activated: bool
    replaced: int | None = None


class DeletedWorkflow(Struct, frozen=True):
    """The counts of what was deleted with a workflow. If `open_runs` is over 0 nothing was."""

    open_runs: int
    schedules: int = 0
    webhooks: int = 0


class Declared(Struct, frozen=True):
    """All triggers of a document that are rows. Which version they are of is known when it is stored."""

    schedules: tuple[ScheduleRow, ...] = ()
    webhooks: tuple[WebhookRow, ...] = ()

    def of_version(self, version: int) -> Declared:
        return Declared(
            tuple(replace(row, version=version) for row in self.schedules),
            tuple(replace(row, version=version) for row in self.webhooks),
        )


WORKFLOW = columns(WorkflowRow)
# Takes the version, so that it is not deleted before it is active.
TAKE_BY_HASH = f"UPDATE workflows SET hash = hash WHERE name = :name AND hash = :hash RETURNING {WORKFLOW}"
TAKE_VERSION = f"UPDATE workflows SET hash = hash WHERE name = :name AND version = :version RETURNING {WORKFLOW}"
BY_VERSION = f"SELECT {WORKFLOW} FROM workflows WHERE name = :name AND version = :version"
# No row: another process has stored this number, or this document, meanwhile.
ADD = f"""
INSERT INTO workflows ({WORKFLOW})
SELECT :name, coalesce(max(version), 0) + 1, :hash, :document, :now FROM workflows WHERE name = :name
ON CONFLICT DO NOTHING RETURNING {WORKFLOW}"""
# The same where a version may become active: no row either if one is active.
ADD_FREE = f"""
INSERT INTO workflows ({WORKFLOW})
SELECT :name, n.next, :hash, :document, :now
  FROM (SELECT coalesce(max(version), 0) + 1 AS next FROM workflows WHERE name = :name) AS n
 WHERE NOT EXISTS (SELECT 1 FROM active_versions WHERE workflow = :name)
ON CONFLICT DO NOTHING RETURNING {WORKFLOW}"""
ACTIVE = f"""
SELECT {WORKFLOW} FROM workflows
 WHERE name = :name AND version = (SELECT version FROM active_versions WHERE workflow = :name)"""
ALL_ACTIVE = f"""
SELECT {WORKFLOW} FROM active_versions AS a JOIN workflows AS w USING (version) WHERE w.name = a.workflow
 ORDER BY a.workflow"""
NAMED = """
SELECT workflow FROM active_versions WHERE workflow = :text OR title = :text AND title <> ''
 ORDER BY CASE workflow WHEN :text THEN 0 ELSE 1 END, workflow LIMIT 1"""
PUT_TITLE = """
UPDATE active_versions SET title = :title
 WHERE workflow = :name AND NOT EXISTS (SELECT 1 FROM active_versions AS o
        WHERE o.workflow <> :name AND :title IN (o.workflow, o.title) AND :title <> '')"""
# Taken before its schedules and webhooks: one change of a workflow at a time.
TAKE_ACTIVE = "UPDATE active_versions SET version = version WHERE workflow = :name RETURNING version"
# Waits for all who begin a run of it (`keep_workflow`), and lets no other begin one.
TAKE_ALONE = "SELECT 1 FROM active_versions WHERE workflow = :name $take_alone"
ADD_ACTIVE = """
INSERT INTO active_versions (workflow, version, since_ms, changed_by) VALUES (:name, :version, :now, :by)
ON CONFLICT (workflow) DO NOTHING"""
CHANGE_ACTIVE = """
UPDATE active_versions SET version = :version, since_ms = :now, changed_by = :by WHERE workflow = :name"""
TRIES_MAX = 100  # each one that fails is one that another process has stored meanwhile
# The last run of a workflow is one step into the index `runs_by_workflow`, whatever number of runs there is.
HEADS = """
SELECT a.workflow, a.version, w.hash, w.created_at_ms, a.since_ms,
       (SELECT max(version) FROM workflows WHERE name = a.workflow),
       (SELECT count(*) FROM workflows WHERE name = a.workflow),
       r.id, r.version, r.status, r.created_at_ms, r.finished_at_ms, a.folder, a.changed_by, a.title
  FROM active_versions AS a
  JOIN workflows AS w ON w.name = a.workflow AND w.version = a.version
  LEFT JOIN runs AS r ON r.id = (SELECT id FROM run_details $index(runs_by_workflow) WHERE workflow = a.workflow
                                  ORDER BY created_at_ms DESC, id DESC LIMIT 1)"""
HEAD = f"{HEADS} WHERE a.workflow = :name"
ALL_HEADS = f"{HEADS} ORDER BY a.workflow"
VERSIONS = f"""
SELECT {columns(VersionRow)} FROM workflows
 WHERE name = :name AND version < :before AND EXISTS (SELECT 1 FROM active_versions WHERE workflow = :name)
 ORDER BY version DESC LIMIT :limit"""
COUNT_OPEN = """
SELECT count(*) FROM heads AS h CROSS JOIN run_details AS d WHERE d.n = h.n AND d.workflow = :name"""

# Pages of workflows as the front page shows them, and for each of a page what starts it next and its last runs. Each
# is bounded by the page, the number of workflows or that of open runs, whatever number of runs there is.
TODAY_MAX: Final = 1_000  # nothing is counted further

CARDS = f"{HEADS} WHERE true"
OF_FOLDER = " AND a.folder = :folder"
WITH_TEXT = r"""
   AND (lower(a.workflow) LIKE :text ESCAPE '\' OR lower(a.title) LIKE :text ESCAPE '\' OR EXISTS
        (SELECT 1 FROM $blocks_of(w.document) AS b
          WHERE lower(coalesce(b.value ->> 'name', '') || ' ' || (b.value ->> 'type')) LIKE :text ESCAPE '\'))"""
ORDERS: Final[dict[Order, str]] = {
    "run": " ORDER BY coalesce(r.created_at_ms, 0) DESC, a.workflow LIMIT :limit OFFSET :after",
    "changed": " ORDER BY a.since_ms DESC, a.workflow LIMIT :limit OFFSET :after",
    "name": " ORDER BY coalesce(nullif(a.title, ''), a.workflow), a.workflow LIMIT :limit OFFSET :after",
}
FOLDERS = "SELECT folder, count(*) FROM active_versions GROUP BY folder ORDER BY folder"
FACTS = f"""
SELECT a.workflow, w.document,
       (SELECT min(s.next_run_at_ms) FROM schedules AS s WHERE s.workflow = a.workflow AND s.enabled = 1),
       (SELECT count(*) FROM (SELECT 1 FROM run_details AS d WHERE d.workflow = a.workflow AND d.created_at_ms >= :since
                               LIMIT {TODAY_MAX}) AS counted)
  FROM active_versions AS a JOIN workflows AS w ON w.name = a.workflow AND w.version = a.version
 WHERE a.workflow IN $texts(:names)"""
SHORT_RUNS = """
SELECT r.workflow, r.id, coalesce(r.status, h.status), r.created_at_ms, coalesce(r.started_at_ms, h.started_at_ms),
       r.finished_at_ms
  FROM $texts(:names) AS v $last_runs(workflow, v.value, runs_by_workflow) LEFT JOIN heads AS h ON h.n = r.n
 ORDER BY r.created_at_ms, r.id"""
OPEN = """
SELECT d.workflow, h.status, count(*) FROM heads AS h CROSS JOIN run_details AS d
 WHERE d.n = h.n AND d.workflow IN $texts(:names) GROUP BY d.workflow, h.status"""


async def get_workflow(readers: Readers, name: str, version: int | None = None) -> WorkflowRow | None:
    """Return the active version, or with a number that one, also of a workflow that was deleted."""
    return await readers.fetch_one(
        WorkflowRow, ACTIVE if version is None else BY_VERSION, {"name": name, "version": version}
    )


async def named(readers: Readers, text: str) -> str:
    """Return the name of the workflow that has this name, else this title; the text itself if there is none."""
    return await readers.value(str, NAMED, {"text": text}) or text


async def list_workflows(readers: Readers) -> list[WorkflowRow]:
    return await readers.fetch(WorkflowRow, ALL_ACTIVE)


async def get_head(readers: Readers, name: str) -> WorkflowHead | None:
    """Return the head, or None if there is no such workflow, or it was deleted."""
    row = await readers.one(HEAD, {"name": name})
    return None if row is None else head_of(row)


async def list_heads(readers: Readers) -> list[WorkflowHead]:
    """Return heads by name. Costs a look into an index for each, however many runs there are."""
    return [head_of(row) for row in await readers.all(ALL_HEADS)]


async def list_versions(readers: Readers, name: str, before: int | None = None, limit: int = 200) -> list[VersionRow]:
    """Return versions below `before`, newest first; [] for a workflow that was deleted."""
    below = VERSION_MAX + 1 if before is None else before
    rows = await readers.all(VERSIONS, {"name": name, "before": below, "limit": limit})
    return [VersionRow(*row) for row in rows]


async def list_cards(
    readers: Readers,
    folder: str | None = None,
    text: str | None = None,
    order: Order = "run",
    after: int = 0,
    limit: int = 24,
) -> list[WorkflowHead]:
    """Return heads, `after` of them left out. `text`: of those that have it in their name, or in the name or type of a
    block, whatever its case."""
    query = CARDS + those_of((OF_FOLDER, folder), (WITH_TEXT, text)) + ORDERS[order]
    like = None if text is None else "%" + re.sub(r"([\\%_])", r"\\\1", text.lower()) + "%"
    values = {"folder": folder, "text": like, "after": after, "limit": limit}
    return [head_of(row) for row in await readers.all(query, values)]


async def count_folders(readers: Readers) -> dict[str, int]:
    """Count workflows by folder; '' are those in none."""
    return dict(await readers.all(FOLDERS))


async def card_facts(readers: Readers, names: Sequence[str], since_ms: int) -> dict[str, CardFacts]:
    rows = await readers.all(FACTS, {"names": as_list(names), "since": since_ms})
    return {name: CardFacts(*facts) for name, *facts in rows}


async def short_runs(readers: Readers, names: Sequence[str], limit: int = 24) -> dict[str, list[ShortRun]]:
    """Return the last runs of each workflow, the newest last."""
    found: dict[str, list[ShortRun]] = {}
    for name, id, status, created, started, finished in await readers.all(
        SHORT_RUNS, {"names": as_list(names), "limit": limit}
    ):
        took = None if finished is None else max(0, finished - (started or created))
        found.setdefault(name, []).append(ShortRun(id, status, created, took))
    return found


async def count_open(readers: Readers, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the open runs of each workflow by status."""
    found: dict[str, dict[str, int]] = {}
    for name, status, count in await readers.all(OPEN, {"names": as_list(names)}):
        found.setdefault(name, {})[status] = count
    return found


def put_workflow(
    tx: Tx,
    name: str,
    document: bytes,
    hash: str,
    now_ms: int,
    declared: Declared | None = None,
    by: str | None = None,
    replaces: int | None = None,
) -> Stored:
    """Store the next version of `name`, or find the existing version with this hash; it is the active one from now
    on. `declared` are the triggers of the document, which replace those of the version that was active; None leaves
    them. `by`: who stores it. With `replaces`, Conflict (would_replace, `active`) if a version is active that is
    neither this number nor the document itself."""
    values = {"name": name, "hash": hash, "document": document, "now": now_ms}
    for _ in range(TRIES_MAX):
        found = tx.fetch_one(WorkflowRow, TAKE_BY_HASH, {"name": name, "hash": hash})
        active = None
        if replaces is not None:
            active = _take_active(tx, name)
            _check_replaces(name, active, found, replaces)
        if found:
            return _make_active(tx, found, False, now_ms, declared, by, replaces)
        if added := tx.fetch_one(WorkflowRow, ADD if replaces is None or active is not None else ADD_FREE, values):
            return _make_active(tx, added, True, now_ms, declared, by)
    raise Conflict(f"workflow '{name}' is being stored by many processes at once", hint="store it again")


def activate_workflow(
    tx: Tx, name: str, version: int, now_ms: int, declared: Declared | None = None, by: str | None = None
) -> Stored | None:
    """As `put_workflow` with the document of `version`. Returns None if there is no such workflow or version."""
    found = tx.fetch_one(WorkflowRow, TAKE_VERSION, {"name": name, "version": version})
    if found is None or _take_active(tx, name) is None:
        return None
    return _make_active(tx, found, False, now_ms, declared, by)


def put_in_folder(tx: Tx, name: str, folder: str) -> bool:
    """Show the workflow in a folder, '' for none. Returns False if there is no such workflow."""
    values = {"name": name, "folder": folder}
    return tx.run("UPDATE active_versions SET folder = :folder WHERE workflow = :name", values) == 1


def put_title(tx: Tx, name: str, title: str) -> bool:
    """Show this in place of the name of the workflow, '' for the name. Returns False if there is no such workflow, or
    another one has this name or title."""
    return tx.run(PUT_TITLE, {"name": name, "title": title}) == 1


def delete_workflow(tx: Tx, name: str) -> DeletedWorkflow | None:
    """Delete the workflow, by the rule "deleting a workflow". Drafts of it are based on nothing from then on. Returns
    None if there is no such workflow."""
    if _take_active(tx, name) is None:
        return None
    tx.rows(TAKE_ALONE, {"name": name})
    (open_runs,) = tx.row(COUNT_OPEN, {"name": name})
    if open_runs:
        return DeletedWorkflow(open_runs)
    schedules = delete_schedules_of(tx, name)
    webhooks = delete_webhooks_of(tx, name)
    unbase_drafts(tx, name)
    forget_workflow(tx, name)
    clear_cache(tx, name)
    tx.run("DELETE FROM active_versions WHERE workflow = :name", {"name": name})
    return DeletedWorkflow(0, schedules, webhooks)


def _check_replaces(name: str, active: int | None, row: WorkflowRow | None, replaces: int) -> None:
    """Raises Conflict unless the active version is `replaces`, or `row` itself, or there is none."""
    if active in (None, replaces, row.version if row else None):
        return
    raise Conflict(
        f"version {active} of workflow '{name}' is active, and this would replace it",
        code="would_replace",
        hint=f"store it under another name, or send `replaces`: {active}",
        active=active,
    )


def _make_active(
    tx: Tx,
    row: WorkflowRow,
    created: bool,
    now_ms: int,
    declared: Declared | None,
    by: str | None,
    replaces: int | None = None,
) -> Stored:
    values = {"name": row.name, "version": row.version, "now": now_ms, "by": by}
    before = _take_active(tx, row.name)
    if before is None and tx.run(ADD_ACTIVE, values) != 1:
        before = _take_active(tx, row.name)  # another process was first
        if replaces is not None:
            _check_replaces(row.name, before, row, replaces)
    if before not in (None, row.version):
        tx.run(CHANGE_ACTIVE, values)
    if declared is not None:
        declared = declared.of_version(row.version)
        put_declared_schedules(tx, row.name, declared.schedules)
        put_declared_webhooks(tx, row.name, declared.webhooks)
    return Stored(row, created, before != row.version, before if before != row.version else None)


def _take_active(tx: Tx, name: str) -> int | None:
    found = tx.rows(TAKE_ACTIVE, {"name": name})
    return int(found[0][0]) if found else None


def head_of(row: tuple[Any, ...]) -> WorkflowHead:
    last = None if row[7] is None else LastRun(*row[7:12])
    return WorkflowHead(*(*row[:7], last, *row[12:]))

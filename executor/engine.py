"""The facade of weft: what the server, the CLI and tests call. Read this first, then `runtime/loop.py`.

    engine = await Engine.open(store, services=services, registry=registry, secret=secret)  # or embed.open_engine
    submitted = await engine.submit(document, input={"amount": 12})
    async for records in engine.follow(submitted.run): ...
    await engine.answer(wait.link, {"note": "fine"}, action="approve", by="Ada")

Every method that changes something returns only after the change is on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self, get_args

import orjson
from msgspec.structs import replace

from compiler.compile import DEFAULT_LIMITS, Compiled
from compiler.diagnostics import Diagnostic
from compiler.document import Limits
from compiler.plan import Plan
from executor.answers import check_input
from executor.blocks.registry import Registry
from executor.core import facts as f
from executor.core.messages import Cancel, encode
from executor.errors import BadRequest, Conflict, DatabaseWriteFailed, NotFound
from executor.journal.reader import keep_plan, load_plan
from executor.notifications.outbox import Notifications
from executor.runtime.clock import Clock, SystemClock
from executor.runtime.compiler import plan_of
from executor.runtime.cursor import PATIENCE_S, Cursor
from executor.runtime.hub import Deltas
from executor.runtime.links import Links
from executor.runtime.lookout import Lookout
from executor.runtime.new_run import Origin, new_run, origin_of
from executor.runtime.pages import Pages
from executor.runtime.parts import Parts
from executor.runtime.worker import Worker
from executor.services import Services
from executor.store.contract import Store
from executor.store.rows import (
    TERMINAL,
    DraftHead,
    EventFilter,
    NewRun,
    Record,
    RunRow,
    RunStatus,
    WaitStatus,
    WorkflowRow,
)
from executor.topics.cache import Cache
from executor.topics.callbacks import Callbacks
from executor.topics.children import Children
from executor.topics.drafts import Drafts
from executor.topics.environment import Environment, EnvName
from executor.topics.history import History
from executor.topics.lifecycle import Lifecycle
from executor.topics.signals import Signals
from executor.topics.waits import Waits
from executor.topics.workflows import Workflows
from executor.triggers.declared import declared_by
from executor.triggers.schedules import Schedules
from executor.triggers.webhooks import Webhooks
from executor.upkeep.task import Upkeep
from executor.views import (
    GraphEdge,
    GraphNode,
    NodeDetail,
    NodeView,
    Rerun,
    RunDocument,
    RunEvent,
    RunGraph,
    RunView,
    SavedWorkflow,
    Submitted,
    WaitView,
    Why,
)
from executor.views import document as document_view
from executor.views import event as event_view
from executor.views import graph as graph_view
from executor.views import node as node_view
from executor.views import rerun as rerun_view
from executor.views import run as run_view

__all__ = [
    "Engine",
    "GraphEdge",
    "GraphNode",
    "NodeDetail",
    "NodeView",
    "Rerun",
    "RunDocument",
    "RunEvent",
    "RunGraph",
    "RunView",
    "SavedWorkflow",
    "Submitted",
    "WaitView",
    "Why",
]

# Without a local signal look again: another process may own the run.
WAIT_POLL_S = 1.0
FOR_EVER_S = 1e9  # thirty years
READY_S = 1.0
# How often a view of a waiting run is built anew because the run moved on meanwhile.
SAME_MOMENT_TRIES = 5
WORKFLOW_NAME_MAX = 200


class Engine:
    def __init__(self, parts: Parts, worker: Worker) -> None:
        self.store = parts.store
        self.services = parts.services
        self.registry = parts.registry
        self.links = parts.links
        self.redactor = parts.redactor
        self._parts = parts
        self._clock = parts.clock
        self._hub = parts.hub
        self._pages = Pages(parts.store, parts.hub)
        self._lookout = Lookout(parts.store, parts.hub)
        self._worker = worker
        self._environment = Environment(parts.store, parts.registry, parts.services)
        self.workflows = Workflows(self)
        self.drafts = Drafts(self)
        self.lifecycle = Lifecycle(self, parts.hub)
        self.history = History(self)
        self.upkeep = Upkeep(self)
        self.waits = Waits(self)
        self.signals = Signals(self)
        self.callbacks = Callbacks(self)
        self.children = Children(self)
        self.cache = Cache(self)
        self.notifications = Notifications(self, parts.clock, parts.hub.messages)
        self.schedules = Schedules(self, parts)
        self.webhooks = Webhooks(self)

    @classmethod
    async def open(
        cls,
        store: Store,
        *,
        registry: Registry,
        services: Services,
        secret: bytes | None = None,
        clock: Clock | None = None,
        work: bool = True,
        lease_ms: int = 15_000,
        documents: Limits = DEFAULT_LIMITS,
    ) -> Self:
        """Open the store and start working. `secret` keys the resume links: keep it, or links end with the process.
        `work=False`: a front that submits and reads while other processes run. `documents`: how large documents may
        be."""
        await store.open()
        links = Links(secret or secrets.token_bytes(32), services.base_url)
        parts = Parts.make(
            store,
            registry=registry,
            services=services,
            clock=clock or SystemClock(),
            links=links,
            documents=documents,
        )
        engine = cls(parts, Worker(parts, lease_ms=lease_ms))
        if work:
            engine._worker.start()
            engine.notifications.start()
            engine.schedules.scheduler.start()
        return engine

    async def stop_working(self, grace_s: float = 8.0) -> None:
        """Start nothing more, free the leases; everything else still works, but no write waits long for a lock of
        others. Running handlers get `grace_s` to end."""
        self.store.stop_retrying()
        await self.schedules.scheduler.stop()
        await self.notifications.stop()
        await self.upkeep.stop()
        await self._worker.stop(grace_s)

    async def close(self, grace_s: float = 8.0) -> None:
        """Stop working and close the store."""
        await self.stop_working(grace_s)
        await self.webhooks.stop()
        await self._lookout.stop()
        self._parts.timers.close()
        await self.services.close()
        await self.store.close()

    # --- workflows ---

    async def compile(self, document: Any, trigger: str | None = None) -> Compiled:
        """Plan and diagnostics; never raises for what is wrong with the document."""
        return await self._parts.compiler.compile(document, trigger)

    async def validate(self, document: Any, trigger: str | None = None) -> list[Diagnostic]:
        return list((await self.compile(document, trigger)).diagnostics)

    async def save_workflow(self, document: Any, name: str | None = None) -> SavedWorkflow:
        """Store it and make it the active version; the same document is the same version. Raises CompileError,
        BadRequest."""
        compiled = await self.compile(document)
        plan = plan_of(compiled)
        name = name or plan.name
        if not name:
            raise BadRequest(
                "the workflow has no name", pointer="/name", hint="add `name` to the document or to the request"
            )
        if len(name) > WORKFLOW_NAME_MAX or any(char < " " or char in "/\x7f" for char in name):
            raise BadRequest(
                f"the workflow cannot be stored as {name[:80]!r}",
                code="name_invalid",
                pointer="/name",
                hint=f"names are part of URLs: at most {WORKFLOW_NAME_MAX} characters, no slash, no control characters",
            )
        # The hash ignores the order of keys, the stored document keeps it: forms show fields as their author wrote
        # them.
        digest = hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
        declared = await declared_by(self, name, document)
        data, now_ms = orjson.dumps(document), self._clock.now_ms()
        stored = await self.store.put_workflow(name, data, digest, now_ms, declared)
        return await self.workflows.saved(stored, document, compiled)

    async def list_workflows(self) -> list[WorkflowRow]:
        """The active version of each."""
        return await self.store.list_workflows()

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowRow:
        """The active version without a number. Raises NotFound."""
        row = await self.store.get_workflow(name)
        if row is not None and version not in (None, row.version):
            row = await self.store.get_workflow(name, version)
        if row is None:
            which = f"workflow '{name}'" if version is None else f"version {version} of workflow '{name}'"
            raise NotFound(f"there is no {which}", code="workflow_not_found")
        return row

    async def plan_of_workflow(self, name: str, version: int | None = None, trigger: str | None = None) -> Plan:
        """What a run of it would be pinned to, if it started at `trigger`. Raises NotFound, CompileError."""
        row = await self.get_workflow(name, version)
        return plan_of(await self.compile(row.document, trigger))

    # --- runs ---

    async def submit(
        self,
        workflow: str | Mapping[str, Any],
        *,
        input: Any = None,
        trigger: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        stop_after: str | None = None,
        draft: DraftHead | None = None,
    ) -> Submitted:
        """Start a run of a stored workflow (by name) or of a document; `draft` tells whose document it is. Raises
        CompileError, NotFound, InputInvalid, and Conflict when `idempotency_key` was used for a different request."""
        row: WorkflowRow | None = None
        if isinstance(workflow, str):
            row = await self.get_workflow(workflow, version)
            document = row.document
        else:
            document = orjson.dumps(workflow)
        compiled = await self.compile(document, trigger)
        plan = plan_of(compiled)
        checked = check_input(plan, input, self.services.sandbox.matches)
        asked = [row.hash if row else plan.hash, checked, trigger, stop_after]
        stop = _node_number(plan, stop_after) if stop_after is not None else None
        start = f.StartRequested(self._clock.now_ms(), secrets.token_hex(16), stop_after=stop)
        origin = Origin(row.name, row.version) if row is not None else origin_of(document, plan, draft)
        stored, created = await self._create(plan, start, origin, checked, idempotency_key, asked)
        return Submitted(
            stored.id, stored.workflow, stored.version, stored.status, created, tuple(compiled.diagnostics)
        )

    async def run(
        self,
        workflow: str | Mapping[str, Any],
        input: Any = None,
        *,
        trigger: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        timeout_s: float | None = None,
    ) -> RunView:
        """Start a run and stay until it has ended. After `timeout_s` (None: never) the view says how it stands then:
        the run goes on, and one that waits for a person may do so for long. Raises as `submit`."""
        submitted = await self.submit(
            workflow, input=input, trigger=trigger, version=version, idempotency_key=idempotency_key
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                async for _ in self.follow(submitted.run):
                    pass
        return await self.get_run(submitted.run)

    async def run_from(
        self, run: str, block: str | None = None, *, input: Any = None, idempotency_key: str | None = None
    ) -> Submitted:
        """A new run that takes over what `run` did before `block` and runs `block` and all that follows from it again;
        without a block it takes over nothing. Raises NotFound, InputInvalid, Conflict when the block lies inside a
        container, the run has not ended, or `idempotency_key` was used for a different request."""
        row, plan = await self._ended(run)
        reuse = await rerun_view.reusable(self.store, plan, run, block or plan.trigger)
        checked = orjson.loads(row.input) if input is None else check_input(plan, input, self.services.sandbox.matches)
        start = f.StartRequested(self._clock.now_ms(), secrets.token_hex(16), reuse=reuse, source_run=run)
        origin = Origin(row.workflow, row.version, row.document_hash, None, row.draft_id, row.draft_rev)
        asked = ["rerun", run, block, checked]
        patches = await rerun_view.patches(self.store, plan, run, reuse)
        stored, created = await self._create(plan, start, origin, checked, idempotency_key, asked, patches)
        return Submitted(stored.id, stored.workflow, stored.version, stored.status, created)

    async def preview_run_from(self, run: str, block: str | None = None) -> Rerun:
        """What `run_from` would take over and run again. Raises the same NotFound and Conflict."""
        async with self.whole(run):
            _, plan = await self._ended(run)
            return await rerun_view.preview(self.store, plan, run, block or plan.trigger)

    async def _ended(self, run: str) -> tuple[RunRow, Plan]:
        async with self.whole(run) as row:
            if row.status not in TERMINAL:
                raise Conflict(
                    f"run {run} has not ended yet (it is {row.status})",
                    code="run_not_ended",
                    hint="cancel it, or wait until it ends",
                )
            return row, await load_plan(self.store, row.plan_hash)

    async def _create(
        self,
        plan: Plan,
        start: f.StartRequested,
        origin: Origin,
        checked: Any,
        idempotency_key: str | None,
        asked: list[Any],
        taken_over: Sequence[Record] = (),
    ) -> tuple[RunRow, bool]:
        request_hash = hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()
        new = new_run(
            plan,
            start,
            origin,
            checked,
            idempotency_key=idempotency_key,
            request_hash=request_hash,
            taken_over=taken_over,
        )
        return await self.create(new, plan)

    async def create(self, new: NewRun, plan: Plan) -> tuple[RunRow, bool]:
        """The stored run, and whether it is new. Raises Conflict: its idempotency key was used for another request."""
        stored, created = await self.store.create_run(new)
        if not created and stored.request_hash != new.request_hash:
            raise Conflict(
                f"idempotency key {new.idempotency_key!r} was used for another request (run {stored.id})",
                code="idempotency_key_reused",
                hint="use a new key for each request",
                run=stored.id,
            )
        if created:
            keep_plan(plan)
            self._parts.owned.wake()
        return stored, created

    async def _run(self, run: str) -> RunRow:
        row = await self.store.get_run(run)
        if row is None:
            raise NotFound(f"there is no run '{run}'", code="run_not_found")
        return row

    @contextlib.asynccontextmanager
    async def whole(self, run: str) -> AsyncIterator[RunRow]:
        """The row of a run, for what is made of it by further looks: if upkeep deletes the run between two of them it
        is not there, instead of being one without events or a plan. Raises NotFound."""
        row = await self._run(run)
        try:
            yield row
        except Exception:
            await self._run(run)
            raise
        await self._run(run)

    async def get_run(self, run: str) -> RunView:
        """The run as it stands. What is shown of a waiting one is of one moment, so that whoever reads it can tell
        whether anything but a person or a signal moves it on. Raises NotFound."""
        async with self.whole(run) as row:
            for _ in range(SAME_MOMENT_TRIES):
                view = await self._view(row)
                now = await self._run(run) if row.status == "waiting" else row
                if (now.seq, now.status) == (row.seq, row.status):
                    break
                row = now
            return view

    async def _view(self, row: RunRow) -> RunView:
        plan = await load_plan(self.store, row.plan_hash)
        waits = tuple(await self.list_waits("pending", row.id))
        view = await self.children.completed(await run_view.build(self.store, plan, row, waits), row)
        # After its children: one that ends tells its parent in the same transaction.
        unread = len(await self.store.read_inbox(row.id)) if row.status == "waiting" else 0
        return replace(view, unread=unread) if unread else view

    async def run_row(self, run: str) -> RunRow:
        """The run's own row, without its nodes: cheap."""
        return await self._run(run)

    async def list_runs(
        self,
        workflow: str | None = None,
        status: str | None = None,
        before: str | None = None,
        limit: int = 50,
        draft: str | None = None,
        *,
        parent: str | None = None,
    ) -> list[RunRow]:
        """Newest first; `before` is the last id of the previous page, `parent` the run that started them."""
        return await self.store.list_runs(workflow, status, before, limit, draft, parent=parent)

    async def count_runs(self, workflow: str | None = None, draft: str | None = None) -> dict[str, int]:
        """By status; all statuses are there."""
        return dict.fromkeys(get_args(RunStatus), 0) | await self.store.count_runs(workflow, draft)

    async def last_inputs(self, workflow: str | None = None, draft: str | None = None, limit: int = 10) -> list[Any]:
        """Different inputs of the last runs, newest first; what is over 64 KiB is no example for a form."""
        found: dict[bytes, Any] = {}
        for data in await self.store.list_inputs(workflow, draft):
            value = orjson.loads(data)
            found.setdefault(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), value)
            if len(found) == limit:
                break
        return list(found.values())

    async def document_of(self, run: str) -> RunDocument:
        """The document of a run, frozen with it. Raises NotFound (run_not_found, document_not_kept)."""
        async with self.whole(run) as row:
            return await document_view.build(self.store, row, frozenset(self.services.env))

    async def node(self, run: str, key: str, attempt: int | None = None, seq: int | None = None) -> NodeDetail:
        """One node key: input, output and error of an attempt (the last one), as it stood after event `seq` (now).
        Raises NotFound."""
        async with self.whole(run) as row:
            plan = await load_plan(self.store, row.plan_hash)
            return await node_view.build(self.store, plan, row, self.services, self._parts.redactor, key, attempt, seq)

    async def wait_finished(self, run: str, timeout_s: float) -> RunView:
        """Returns when the run has ended, or asks somebody, or waits for what does not come by itself in this time, or
        after `timeout_s`, whichever is first."""
        clock = asyncio.get_running_loop().time
        until = clock() + min(timeout_s, FOR_EVER_S)
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    signal = self._hub.watch(run)
                    try:
                        row = await self._run(run)
                        until_ms = self._clock.now_ms() + round((until - clock()) * 1000)  # anew: it may have been set
                        if row.status in TERMINAL or (row.status == "waiting" and await self._asleep(row, until_ms)):
                            break
                        await asyncio.wait([signal], timeout=WAIT_POLL_S)
                    finally:
                        signal.cancel()
        except TimeoutError:
            pass
        return await self.get_run(run)

    async def _asleep(self, row: RunRow, until_ms: int) -> bool:
        """With a timer or a retry that is due by then, with an answer in the inbox, or while its children work or have
        such a timer, a waiting run only looks asleep. Asked in this order, because a child ends and tells its parent in
        one transaction: what it told is in the inbox or the journal."""
        soon = row.next_run_at_ms is not None and row.next_run_at_ms <= until_ms
        if soon and not await self._asks(row.id):
            return False
        if await self.store.count_active_below(row.id, until_ms) or await self.store.read_inbox(row.id):
            return False
        return (await self._run(row.id)).seq == row.seq

    async def _asks(self, run: str) -> bool:
        """Whether it waits for an answer or a signal. That may expire by itself soon, but whoever waits for the run may
        be the one to give it."""
        waits = await self.store.list_waits("pending", run, limit=1_000)
        return any(wait.kind not in ("timer", "child") for wait in waits)

    async def cancel(self, run: str, reason: str = "") -> bool:
        """Ask the run to stop: it hears of it before it ends. False: it had ended already."""
        await self._run(run)
        posted = await self.store.cancel_run(run, encode(Cancel(reason)), self._clock.now_ms())
        if posted:
            self._parts.owned.wake(run)
            self._parts.owned.wake_family(run)
        return posted

    async def plan_of(self, run: str) -> Plan:
        async with self.whole(run) as row:
            return await load_plan(self.store, row.plan_hash)

    async def graph(self, run: str) -> RunGraph:
        async with self.whole(run) as row:
            return await graph_view.build(self.store, await load_plan(self.store, row.plan_hash), row)

    async def why(self, run: str, node: str | None = None) -> list[Why]:
        """Every node that is not decided yet, or the one asked for; `engine.history.why` tells it of any moment."""
        return await self.history.why(run, node)

    # --- events ---

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[list[Record]]:
        """The journal after seq `after`, in batches, then live; ends after run.finished."""
        cursor = self.cursor(run, after)
        while True:
            signal = cursor.watch()
            try:
                records = await cursor.take()
                if records is None:
                    return
                if records:
                    yield records
                else:
                    await asyncio.wait([signal], timeout=PATIENCE_S)
            finally:
                signal.cancel()

    async def stream(self, run: str, after: int = 0) -> AsyncIterator[RunEvent]:
        """The same, one event after the other, decoded and with outputs. Raises NotFound."""
        await self._run(run)
        async for records in self.follow(run, after):
            for record in records:
                yield await event_view.build(self.store, run, record)

    def cursor(self, run: str, after: int = 0) -> Cursor:
        """The same by hand, for a reader that waits for other things as well."""
        return Cursor(self.store, self._hub, self._pages, self._lookout, run, after)

    def deltas(self, run: str) -> Deltas:
        """Live-only (node key, text) pieces, as handlers emit them. Close it."""
        return self._hub.deltas(run)

    async def find_events(self, run: str, where: EventFilter) -> tuple[list[Record], int]:
        async with self.whole(run):
            return await self.store.find_events(run, where)

    # --- people and signals ---

    async def list_waits(
        self, status: WaitStatus | None = "pending", run: str | None = None, limit: int = 200
    ) -> list[WaitView]:
        """Oldest first; `engine.waits.page` has filters and pages."""
        return await self.waits.views(await self.store.list_waits(status, run, limit))

    async def find_wait(self, link: str) -> WaitView:
        """By its resume link or the token in it. Raises NotFound."""
        return await self.waits.find(link)

    async def answer(
        self, link: str, fields: Mapping[str, Any], action: str | None = None, by: str | None = None
    ) -> WaitView:
        """Answer a wait, once, by its resume link or the token in it. Raises NotFound, AnswerInvalid (still open),
        AlreadyAnswered (`extra["wait"]` says by whom)."""
        return await self.waits.answer(link, fields, action, by)

    async def signal(
        self,
        run: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        dedupe_key: str | None = None,
        by: str | None = None,
    ) -> tuple[int, bool]:
        """Send a signal; see `engine.signals.send`."""
        return await self.signals.send(run, name, payload, correlation=correlation, dedupe_key=dedupe_key, by=by)

    def wake(self, run: str) -> None:
        """Something was committed for `run` that its readers and its owner need to know."""
        self._parts.wake(run)

    # --- the rest ---

    async def environment(self) -> list[EnvName]:
        """Names that `${NAME}` reads or could read, and where they are read. Never values."""
        return await self._environment.names()

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def blocks(self) -> list[dict[str, Any]]:
        """The catalogue, as JSON."""
        return self.registry.catalogue()

    def check_file(self) -> None:
        """Waits for nothing. Raises DatabaseReplaced when the database was deleted or replaced under this process."""
        self.store.check_identity()

    async def healthy(self) -> None:
        """Raises when the database cannot be read. Does not wait for writes of this or another process."""
        self.check_file()
        await self.store.ping_read()

    async def ready(self, within_s: float = READY_S) -> None:
        """Raises when the database cannot be written to within this time."""
        self.check_file()
        try:
            async with asyncio.timeout(within_s):
                await self.store.ping()
        except TimeoutError:
            raise DatabaseWriteFailed(f"the database took no write within {within_s:g} s") from None


def _node_number(plan: Plan, block: str) -> int:
    number = plan.node_index(block)
    if number is None:
        number = plan.node_index(f"{block}:end")
    if number is None:
        raise NotFound(f"the workflow has no block '{block}'", code="node_not_found")
    return number

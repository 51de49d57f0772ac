"""The facade of weft: what the server, the CLI and tests call. Read this first, then `runtime/run.py`.

    engine = await Engine.open(store, services=services, registry=registry, secret=secret)
    submitted = await engine.submit(document, input={"amount": 12})
    async for records in engine.follow(submitted.run): ...
    await engine.answer(token, {"note": "fine"}, action="approve", by="Ada")

Every method that changes something returns only after the change is on disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self, get_args

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.compile import Compiled, compile_document
from compiler.diagnostics import CompileError, Diagnostic
from compiler.plan import Plan
from executor.answers import check_answer, check_input, check_payload, fact_of_answer
from executor.blocks.registry import Registry
from executor.core import facts as f
from executor.core.decide import decide
from executor.core.state import State
from executor.drafts import Drafts
from executor.environment import Environment, EnvName
from executor.errors import AlreadyAnswered, BadRequest, Conflict, NotFound
from executor.journal import Codec
from executor.links import Links
from executor.runtime.clock import Clock, SystemClock
from executor.runtime.cursor import Cursor
from executor.runtime.hub import Deltas, Hub
from executor.runtime.pages import Pages
from executor.runtime.recover import Parts, keep_plan, load_plan
from executor.runtime.timers import Timers
from executor.runtime.worker import Worker
from executor.services import Services
from executor.store.base import TERMINAL, DraftHead, EventFilter, NewRun, Record, RunRow, RunStatus, Store, WorkflowRow
from executor.values.redact import Redactor
from executor.views import (
    GraphEdge,
    GraphNode,
    NodeDetail,
    NodeView,
    Rerun,
    RunDocument,
    RunGraph,
    RunView,
    SavedWorkflow,
    Submitted,
    WaitView,
    Why,
)
from executor.views import document as document_view
from executor.views import graph as graph_view
from executor.views import node as node_view
from executor.views import rerun as rerun_view
from executor.views import run as run_view
from executor.views import wait as wait_view
from executor.views import why as why_view

__all__ = [
    "Engine",
    "GraphEdge",
    "GraphNode",
    "NodeDetail",
    "NodeView",
    "Rerun",
    "RunDocument",
    "RunGraph",
    "RunView",
    "SavedWorkflow",
    "Submitted",
    "WaitView",
    "Why",
]

# Without a local signal look again: another process may own the run.
WAIT_POLL_S = 1.0
WORKFLOW_NAME_MAX = 200


class Engine:
    def __init__(self, parts: Parts, worker: Worker, links: Links) -> None:
        self.store = parts.store
        self.services = parts.services
        self.registry = parts.registry
        self._parts = parts
        self._clock = parts.clock
        self._hub = parts.hub
        self._pages = Pages(parts.store, parts.hub)
        self._worker = worker
        self._links = links
        self._compiled: dict[tuple[str, str | None], Compiled] = {}
        self._environment = Environment(parts.store, parts.registry, parts.services)
        self.drafts = Drafts(self)

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
    ) -> Self:
        """Open the store and start working. `secret` keys the resume links: keep it, or links end with the process.
        `work=False`: a front that submits and reads while other processes run."""
        await store.open()
        clock = clock or SystemClock()
        links = Links(secret or secrets.token_bytes(32), services.base_url)
        parts = Parts(
            store=store,
            registry=registry,
            services=services,
            clock=clock,
            timers=Timers(clock),
            hub=Hub(),
            redactor=Redactor(services.env[name] for name in services.secrets if name in services.env),
            token_hash=lambda run, wait: links.hash(links.token(run, wait)),
        )
        engine = cls(parts, Worker(parts, lease_ms=lease_ms), links)
        if work:
            engine._worker.start()
        return engine

    async def stop_working(self, grace_s: float = 8.0) -> None:
        """Start nothing more, free the leases; everything else still works. Running handlers get `grace_s` to end."""
        await self._worker.stop(grace_s)

    async def close(self, grace_s: float = 8.0) -> None:
        """Stop working and close the store."""
        await self.stop_working(grace_s)
        self._parts.timers.close()
        await self.services.close()
        await self.store.close()

    # --- workflows ---

    def compile(self, document: Any, trigger: str | None = None) -> Compiled:
        """Plan and diagnostics; never raises for what is wrong with the document."""
        data = document if isinstance(document, bytes) else orjson.dumps(document)
        cache_key = (hashlib.sha256(data).hexdigest(), trigger)
        compiled = self._compiled.get(cache_key)
        if compiled is None:
            compiled = compile_document(data, self.registry, trigger=trigger, env_names=frozenset(self.services.env))
            if len(self._compiled) >= 256:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[cache_key] = compiled
        return compiled

    def validate(self, document: Any, trigger: str | None = None) -> list[Diagnostic]:
        return list(self.compile(document, trigger).diagnostics)

    async def save_workflow(self, document: Any, name: str | None = None) -> SavedWorkflow:
        """The same document is the same version. Raises CompileError, BadRequest."""
        compiled = self.compile(document)
        plan = _plan_or_raise(compiled)
        name = name or plan.name
        if not name:
            raise BadRequest(
                "the workflow has no name", pointer="/name", hint="give it a name, or name it in the request"
            )
        if len(name) > WORKFLOW_NAME_MAX or any(char < " " or char in "/\x7f" for char in name):
            raise BadRequest(
                f"the workflow can not be stored as {name[:80]!r}",
                code="name_invalid",
                pointer="/name",
                hint=f"names are part of addresses: at most {WORKFLOW_NAME_MAX} characters, no slash, no controls",
            )
        # The hash ignores the order of keys, the stored document keeps it: forms show fields as their author wrote
        # them.
        digest = hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
        row, created = await self.store.put_workflow(name, orjson.dumps(document), digest, self._clock.now_ms())
        return SavedWorkflow(row.name, row.version, row.hash, created, tuple(compiled.diagnostics))

    async def list_workflows(self) -> list[WorkflowRow]:
        return await self.store.list_workflows()

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowRow:
        row = await self.store.get_workflow(name, version)
        if row is None:
            which = f"workflow '{name}'" if version is None else f"version {version} of workflow '{name}'"
            raise NotFound(f"there is no {which}", code="workflow_not_found")
        return row

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
        compiled = self.compile(document, trigger)
        plan = _plan_or_raise(compiled)
        checked = check_input(plan, input, self.services.sandbox.matches)
        asked = [row.hash if row else plan.hash, checked, trigger, stop_after]
        stop = _node_number(plan, stop_after) if stop_after is not None else None
        start = f.StartRequested(self._clock.now_ms(), secrets.token_hex(16), stop_after=stop)
        if row is not None:
            origin = _Origin(row.name, row.version)
        else:
            digest = hashlib.sha256(document).hexdigest()
            name = (draft.name if draft else "") or plan.name
            origin = _Origin(name, None, digest, document, draft.id if draft else None, draft.rev if draft else None)
        stored, created = await self._create(plan, start, origin, checked, idempotency_key, asked)
        return Submitted(
            stored.id, stored.workflow, stored.version, stored.status, created, tuple(compiled.diagnostics)
        )

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
        origin = _Origin(row.workflow, row.version, row.document_hash, None, row.draft_id, row.draft_rev)
        asked = ["rerun", run, block, checked]
        patches = await rerun_view.patches(self.store, plan, run, reuse)
        stored, created = await self._create(plan, start, origin, checked, idempotency_key, asked, patches)
        return Submitted(stored.id, stored.workflow, stored.version, stored.status, created)

    async def preview_run_from(self, run: str, block: str | None = None) -> Rerun:
        """What `run_from` would take over and run again. Raises the same NotFound and Conflict."""
        _, plan = await self._ended(run)
        return await rerun_view.preview(self.store, plan, run, block or plan.trigger)

    async def _ended(self, run: str) -> tuple[RunRow, Plan]:
        row = await self._run(run)
        if row.status not in TERMINAL:
            raise Conflict(
                f"run {run} has not ended yet (it is {row.status})",
                code="run_not_ended",
                hint="cancel it, or wait for its end",
            )
        return row, await load_plan(self.store, row.plan_hash)

    async def _create(
        self,
        plan: Plan,
        start: f.StartRequested,
        origin: _Origin,
        checked: Any,
        idempotency_key: str | None,
        asked: list[Any],
        taken_over: Sequence[Record] = (),
    ) -> tuple[RunRow, bool]:
        started = decide(plan, State.new(plan), start)[0]
        request_hash = hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()
        new = NewRun(
            id=start.run,
            workflow=origin.workflow,
            version=origin.version,
            plan_hash=plan.hash,
            plan=plan.encoded,
            input=orjson.dumps(checked),
            records=(
                Codec(plan).to_record(1, start.at_ms, started),
                *(replace(record, at_ms=start.at_ms) for record in taken_over),
            ),
            now_ms=start.at_ms,
            idempotency_key=idempotency_key,
            request_hash=request_hash,
            document_hash=origin.document_hash,
            document=origin.document,
            draft_id=origin.draft_id,
            draft_rev=origin.draft_rev,
        )
        stored, created = await self.store.create_run(new)
        if not created and stored.request_hash != request_hash:
            raise Conflict(
                f"idempotency key {idempotency_key!r} was used for another request (run {stored.id})",
                code="idempotency_key_reused",
                hint="use a new key for a new request",
                run=stored.id,
            )
        if created:
            keep_plan(plan)
            self._worker.wake()
        return stored, created

    async def _run(self, run: str) -> RunRow:
        row = await self.store.get_run(run)
        if row is None:
            raise NotFound(f"there is no run '{run}'", code="run_not_found")
        return row

    async def get_run(self, run: str) -> RunView:
        row = await self._run(run)
        plan = await load_plan(self.store, row.plan_hash)
        waits = await self.list_waits("pending", run)
        return await run_view.build(self.store, plan, row, tuple(waits))

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
    ) -> list[RunRow]:
        """Newest first; `before` is the last id of the previous page."""
        return await self.store.list_runs(workflow, status, before, limit, draft)

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
        """The document a run was made from, frozen with it. Raises NotFound (run_not_found, document_not_kept)."""
        row = await self._run(run)
        return await document_view.build(self.store, row, frozenset(self.services.env))

    async def node(self, run: str, key: str, attempt: int | None = None, seq: int | None = None) -> NodeDetail:
        """One node key: input, output and error of an attempt (the last one), as it stood after event `seq` (now).
        Raises NotFound."""
        row = await self._run(run)
        plan = await load_plan(self.store, row.plan_hash)
        return await node_view.build(self.store, plan, row, self.services, self._parts.redactor, key, attempt, seq)

    async def wait_finished(self, run: str, timeout_s: float) -> RunView:
        """Returns when the run has ended or waits for something, or after `timeout_s`, whichever is first."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    signal = self._hub.watch(run)
                    row = await self._run(run)
                    # With an answer in the inbox the run only looks asleep.
                    asleep = row.status == "waiting" and not await self.store.read_inbox(run)
                    if row.status in TERMINAL or asleep:
                        signal.cancel()
                        break
                    await asyncio.wait([signal], timeout=WAIT_POLL_S)
        except TimeoutError:
            pass
        return await self.get_run(run)

    async def cancel(self, run: str, reason: str = "") -> bool:
        """Ask the run to stop. False: it had ended already."""
        await self._run(run)
        fact = orjson.dumps({"type": "cancel", "reason": reason})
        posted = await self.store.post_fact(run, fact, self._clock.now_ms())
        if posted:
            self._worker.wake(run)
        return posted

    async def plan_of(self, run: str) -> Plan:
        return await load_plan(self.store, (await self._run(run)).plan_hash)

    async def graph(self, run: str) -> RunGraph:
        row = await self._run(run)
        return await graph_view.build(self.store, await load_plan(self.store, row.plan_hash), row)

    async def why(self, run: str, node: str | None = None) -> list[Why]:
        """Every node that is not decided yet, or the one asked for (a node id or a whole key)."""
        row = await self._run(run)
        return await why_view.build(self.store, await load_plan(self.store, row.plan_hash), row, node)

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
                    after = records[-1].seq
                    yield records
                else:
                    await asyncio.wait([signal], timeout=cursor.patience_s)
            finally:
                signal.cancel()

    def cursor(self, run: str, after: int = 0) -> Cursor:
        """The same by hand, for a reader that waits for other things as well."""
        return Cursor(self.store, self._hub, self._pages, self._worker.holds, run, after)

    def deltas(self, run: str) -> Deltas:
        """Live-only (node key, text) pieces, as handlers emit them. Close it."""
        return self._hub.deltas(run)

    async def find_events(self, run: str, where: EventFilter) -> tuple[list[Record], int]:
        await self._run(run)
        return await self.store.find_events(run, where)

    # --- people and signals ---

    async def list_waits(
        self, status: str | None = "pending", run: str | None = None, limit: int = 200
    ) -> list[WaitView]:
        rows = await self.store.list_waits(status, run, limit)  # type: ignore[arg-type]
        return [await self._wait_view(row) for row in rows]

    async def find_wait(self, token: str) -> WaitView:
        row = await self.store.find_wait(self._links.hash(token))
        if row is None:
            raise NotFound("this link is not valid", code="wait_not_found", hint="links are long: was it cut off?")
        return await self._wait_view(row)

    async def _wait_view(self, row: Any) -> WaitView:
        run = await self._run(row.run_id)
        plan = await load_plan(self.store, run.plan_hash)
        link = self._links.url(row.run_id, row.id) if row.status == "pending" and row.kind != "timer" else None
        return wait_view.build(plan, run, row, self._clock.now_ms(), link)

    async def answer(
        self, token: str, fields: Mapping[str, Any], action: str | None = None, by: str | None = None
    ) -> WaitView:
        """Answer a wait, once. Raises NotFound, AnswerInvalid (still open), AlreadyAnswered (`extra["wait"]` says by
        whom)."""
        token_hash = self._links.hash(token)
        row = await self.store.find_wait(token_hash)
        if row is None:
            raise NotFound("this link is not valid", code="wait_not_found", hint="links are long: was it cut off?")
        now_ms = self._clock.now_ms()
        if row.status != "pending" or row.kind == "timer":
            raise _answered_before(await self._wait_view(row))
        cleaned = check_answer(row, fields, action, self.services.sandbox.matches)
        response = orjson.dumps({**cleaned, **({"action": action} if action is not None else {})})
        fact = fact_of_answer(row, cleaned, action, by, now_ms)
        answered = await self.store.answer_wait(token_hash, response, by, fact, now_ms)
        if answered is None:
            raise NotFound("this link is not valid", code="wait_not_found")
        if not answered.won:
            raise _answered_before(await self._wait_view(answered.wait))
        self._hub.signal(row.run_id)
        self._worker.wake(row.run_id)  # the run goes on while the reply is being made
        return await self._wait_view(answered.wait)

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
        """Send a signal; kept until a wait of its name opens. Returns (its number, whether it is new).
        Raises NotFound, Conflict (the run has ended)."""
        await self._run(run)
        fact = orjson.dumps({"type": "signal", "name": name})
        posted = await self.store.post_signal(
            run, name, correlation, check_payload(payload), dedupe_key, by, fact, self._clock.now_ms()
        )
        if posted is None:
            raise Conflict(f"run {run} has ended: it takes no more signals", code="run_ended")
        row, new = posted
        self._worker.wake(run)
        return row.seq, new

    # --- the rest ---

    async def environment(self) -> list[EnvName]:
        """Names that `${NAME}` reads or could read, and where they are read. Never values."""
        return await self._environment.names()

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def blocks(self) -> list[dict[str, Any]]:
        """The catalogue, as JSON."""
        return self.registry.catalogue()

    async def healthy(self) -> None:
        """Raises when the database does not work."""
        await self.store.ping()


class _Origin(Struct, frozen=True):
    """Where a run comes from: a version of a stored workflow, or a document (None with a hash: it is stored already),
    which may be a draft's."""

    workflow: str
    version: int | None
    document_hash: str | None = None
    document: bytes | None = None
    draft_id: str | None = None
    draft_rev: int | None = None


def _plan_or_raise(compiled: Compiled) -> Plan:
    if compiled.plan is None:
        raise CompileError(list(compiled.diagnostics))
    return compiled.plan


def _node_number(plan: Plan, block: str) -> int:
    number = plan.node_index(block)
    if number is None:
        number = plan.node_index(f"{block}:end")
    if number is None:
        raise NotFound(f"the workflow has no block '{block}'", code="node_not_found")
    return number


def _answered_before(view: WaitView) -> AlreadyAnswered:
    if view.status == "answered":
        message = f"this was answered before by {view.answered_by or 'somebody who left no name'}"
    else:
        message = f"this wait is {view.status}: it takes no answer any more"
    return AlreadyAnswered(
        message, code="already_answered" if view.status == "answered" else f"wait_{view.status}", wait=view
    )

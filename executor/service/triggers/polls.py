"""Triggers that poll a source: their rows are schedules with a state. At each of its times the scheduler claims the
poll, its source is read (`executor.blocks.types.polled`), and one transaction creates the runs of the events and moves
the state past them. So each event starts one run, wherever a process ends and however many there are.

Each poll has a claim, which is the next time of the schedule: it fences off all others until the claim ends.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any, Final, cast

from msgspec import Struct, convert
from msgspec.json import decode, encode
from msgspec.structs import replace

from compiler.diagnostics import CompileError
from compiler.plan import Node
from executor.blocks.services import Services
from executor.blocks.types.polled import Before, Event, Found, Polling, Source, digest
from executor.errors import BadRequest, BlockError, StoreError, WeftError
from executor.kernel.core import facts as f
from executor.kernel.handler.base import Access, Over, StepContext
from executor.kernel.journal.codec import keep_plan
from executor.kernel.run.new_run import Origin, check_input, new_run, new_run_id
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.alerts import AlertRow
from executor.kernel.store.topics.schedules import Poll, ScheduleRow
from executor.kernel.values import cron
from executor.kernel.values.resolve import compile_template, environment_names, names_elsewhere
from executor.kernel.values.scope import Values
from executor.service.parts import Parts, Topic
from executor.service.triggers.declared import StartOf, start_of

log = logging.getLogger("weft.triggers")

POLLS_MAX: Final = 50  # at the same time in a process
READ_S: Final = 90.0
SAMPLE_S: Final = 30.0  # a person waits
CLAIM_MS: Final = 120_000  # longer than reading: a poll whose process ended is another one's then
CATCH_UP_MS: Final = 15 * 60_000  # between polls of a source whose service reports events
SETTLE_MS: Final = 15_000
RUNS_MAX: Final = 100  # of one transaction
SEEN_MAX: Final = 10_000
BACKOFF_MAX_MS: Final = 3_600_000
ALERT_AT: Final = 3  # failures in a row
ERROR_CHARS_MAX: Final = 500
BATCH_MAX: Final = 1_000  # events of a run, unless its trigger has fewer
DEBOUNCES_MAX: Final = 10  # events that never stop wait no longer than this many times
FAILURES_MAX: Final = 20  # of one poll that are listed


class State(Struct, omit_defaults=True):
    """`seen`: the last ids, newest last; `failures`: in a row. `waiting`: events that wait for others are still in the
    source, since `first_ms`, and were fewer until `last_ms`. A state that is None has not seen its source."""

    position: Any = None
    seen: list[str] = []
    failures: int = 0
    waiting: int = 0
    first_ms: int = 0
    last_ms: int = 0


AlertsOf = Callable[[ScheduleRow, int], Awaitable[tuple[AlertRow, ...]]]


Group = list[tuple[str, Event]]  # the events of a run, with their digests


class Polls(Topic):
    """The polls under way in this process. `ended` is called after each, `alerts_of` for one that fails again and
    again."""

    def __init__(self, parts: Parts, ended: Callable[[], None], alerts_of: AlertsOf) -> None:
        super().__init__(parts)
        self._ended = ended
        self._alerts_of = alerts_of
        self._tasks: dict[str, asyncio.Task[list[str]]] = {}
        self._services: Services | None = None

    @property
    def under_way(self) -> int:
        return len(self._tasks)

    async def begin(self, row: ScheduleRow, now_ms: int) -> asyncio.Task[list[str]] | None:
        """Poll in a task of its own, which returns the runs. Returns None if it is another process's, or there is no
        room. Raises StoreError."""
        assert row.next_run_at_ms is not None
        if row.id in self._tasks or len(self._tasks) >= POLLS_MAX:
            return None
        until_ms = max(now_ms, row.next_run_at_ms) + CLAIM_MS
        if not await self._store.claim_poll(row.id, row.next_run_at_ms, until_ms):
            return None
        task = asyncio.create_task(self._poll(row, until_ms), name=f"poll {row.id}")
        self._tasks[row.id] = task
        task.add_done_callback(lambda _: self._done(row.id))
        return task

    async def stop(self) -> None:
        """Stop. What was read and not committed is read again."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, id: str) -> None:
        task = self._tasks.pop(id)
        if not task.cancelled() and task.exception() is not None:
            log.error("the poll of %s failed", id, exc_info=task.exception())
        self._ended()

    async def _poll(self, row: ScheduleRow, claimed_ms: int) -> list[str]:
        claim = Poll(row.id, claimed_ms, claimed_ms, self._clock.now_ms())
        state = _state_of(row)
        try:
            start = await start_of(self._parts, row)
            async with asyncio.timeout(READ_S):
                found = await self._read(row, start, state)
            return await self._record(row, start, claim, state, found)
        except asyncio.CancelledError:
            await self._release(claim)
            raise
        except StoreError as error:  # the claim ends by itself
            log.warning("the poll of %s is not recorded: %s", row.id, error)
        except Exception as error:
            await self._fail(row, claim, state, error)
        return []

    async def _release(self, claim: Poll) -> None:
        """Leave the poll to the next process at once, if the database takes it."""
        try:
            await asyncio.shield(self._store.claim_poll(claim.schedule_id, claim.expected_ms, claim.now_ms))
        except (StoreError, asyncio.CancelledError):
            log.debug("the claim of the poll %s ends by itself", claim.schedule_id)

    async def _read(self, row: ScheduleRow, start: StartOf, state: State | None) -> Found:
        """Ask the source. Raises BlockError, TimeoutError."""
        known = State() if state is None else state
        return await self.ask(start, f"poll:{row.id}", Before(known.position, _Seen(known.seen), state is None))

    async def look(self, start: StartOf, name: str, state: State | None) -> tuple[Event | None, State]:
        """Return the first event after this state, or the newest one without it, and the state after it, for a test.
        Nothing is stored. Raises BlockError, TimeoutError."""
        known, first = State() if state is None else state, state is None
        async with asyncio.timeout(SAMPLE_S):
            found = await self.ask(start, name, Before(known.position, _Seen(known.seen), first, newest=first))
        ids, seen = {digest(event.id): event for event in found.events}, set(known.seen)
        new = [event for id, event in ids.items() if id not in seen]
        state = State(found.position, [*(id for id in known.seen if id not in ids), *ids][-SEEN_MAX:])
        return (new[-1 if first else 0] if new else None), state

    async def ask(self, start: StartOf, name: str, before: Before, **more: Any) -> Found:
        """Call a source with the params of its node, as an attempt of a run would, and `more`. Raises BlockError."""
        source = self._parts.registry.handler(start.node.type)
        if not isinstance(source, Source):
            raise BlockError(f"blocks of type {start.node.type} cannot poll", code="not_a_source", retryable=False)
        async with self.asking(start, name, **more) as ctx:
            return await source.poll(ctx, before)

    @asynccontextmanager
    async def asking(self, start: StartOf, name: str, **more: Any) -> AsyncIterator[StepContext]:
        """Open what the node of a trigger needs to send requests: its params, filled in, and secrets. Raises
        BlockError."""
        node, vault = start.node, self._parts.vault
        names = environment_names(node)
        spec = self._parts.registry.handler(node.type).spec
        rules = await vault.open(names, names_elsewhere(node, spec)) if names else {}
        params = compile_template(node).fill(Values(start.plan, {}, vault.values), ()) | more
        if self._services is None:
            self._services = copy.copy(self._parts.services)
            self._services.tracing = None  # it is no part of a run
        own = _Asking(name, start.workflow, node, self._services, self._parts)
        ctx = StepContext(cast(Access, own), params, {}, {}, self._clock.now_ms())
        with vault.bound(rules) if rules else nullcontext():
            yield ctx

    async def _record(
        self, row: ScheduleRow, start: StartOf, claim: Poll, state: State | None, found: Found
    ) -> list[str]:
        """Commit the runs and the state, at most RUNS_MAX runs at a time. Returns the ids of the runs."""
        known = State() if state is None else state
        seen, last = set(known.seen), [digest(event.id) for event in found.events]
        polling = Polling(start.params)
        new: dict[str, Event] = {}
        if state is not None or polling.existing:
            new = {id: event for id, event in zip(last, found.events, strict=True) if id not in seen}
        now_ms = self._clock.now_ms()
        next_ms = now_ms if found.more else cron.parse(row.cron, row.tz).next(now_ms) or now_ms + BACKOFF_MAX_MS
        started: list[str] = []
        groups, left = _grouped(list(new.items()), polling, state, now_ms)
        if left.waiting:
            next_ms = min(cron.parse(row.cron, row.tz).next(now_ms) or now_ms, _until_ms(left, polling, now_ms))
        elif row.push is not None and not found.more:
            next_ms = await self._catch_up_ms(row, now_ms, next_ms, bool(new))
        parts = [groups[at : at + RUNS_MAX] for at in range(0, len(groups), RUNS_MAX)] or [[]]
        for number, part in enumerate(parts, 1):
            runs, failures = await self._runs_of(row, start, part, polling.groups)
            known = State(known.position, [*known.seen, *(id for group in part for id, _ in group)])
            is_last = number == len(parts)
            if is_last and left.waiting:
                known = replace(left, position=found.position if found.again else known.position, seen=known.seen)
            elif is_last:
                present = dict.fromkeys(last)
                known = State(found.position, [*(id for id in known.seen if id not in present), *present])
            known.seen = known.seen[-SEEN_MAX:]
            data = encode(known)
            claim = replace(
                claim,
                next_run_at_ms=next_ms if is_last else claim.expected_ms + 1,  # each is fenced by the one before
                now_ms=now_ms,
                runs=tuple(runs),
                state=None if data == row.poll else data,
                error=failures[-1] if failures else found.note,
                failures=tuple(failures[:FAILURES_MAX]),
            )
            created = await self._store.record_poll(claim)
            if created is None:
                return started  # another process is at it, or the trigger was changed
            claim = replace(claim, expected_ms=claim.next_run_at_ms)
            if created:
                keep_plan(start.plan)
            for run in created:
                self._parts.wake(run.id)
                started.append(run.id)
        return started

    async def _catch_up_ms(self, row: ScheduleRow, now_ms: int, next_ms: int, has_new: bool) -> int:
        """Return when a source is polled whose service reports events. A list may show its new items a little later
        than they are reported."""
        hooks = await self._store.list_hooks(row.id)
        hook = next((one for one in hooks if one.wanted and one.is_live(now_ms)), None)
        if hook is None:
            return next_ms
        if not has_new and (hook.delivered_at_ms or 0) + SETTLE_MS > now_ms:
            return now_ms + SETTLE_MS
        return max(next_ms, now_ms + CATCH_UP_MS)

    async def _runs_of(
        self, row: ScheduleRow, start: StartOf, groups: Sequence[Group], are_lists: bool
    ) -> tuple[list[NewRun], list[str]]:
        """Make the runs, and return beside them why events have none: their data cannot be the input of a run, which no
        further try would change. `are_lists`: runs get all events of their group."""
        runs: list[NewRun] = []
        failures: list[str] = []
        loaded = [[one for each in group if (one := await self._loaded(*each, failures))] for group in groups]
        left = [group for group in reversed(loaded) if group]
        while left:
            group, now_ms = left.pop(), self._clock.now_ms()
            id, event = group[0]
            input: dict[str, Any] = {"event": event.value, "id": event.id, "at": now_ms}
            if are_lists:
                input["events"] = [each.value for _, each in group]
            try:
                checked = await check_input(start.plan, self._parts.redactor.redact_value(input))
                # Only what a source has stored is a file of the run: its data may name any.
                files = (await self._parts.files.admit(checked)).files if event.load else ()
            except BadRequest as error:
                if len(group) > 1:  # one of them, or together they are too large
                    left += reversed([[each] for each in group])
                    continue
                log.warning("event %s of %s starts no run: %s", event.id, row.id, error)
                failures.append(f"event {event.id[:80]}: {error}"[:ERROR_CHARS_MAX])
                continue
            requested = f.StartRequested(now_ms, new_run_id(now_ms))
            key = f"event:{row.created_at_ms}:{id}:{row.id}"[:200]
            origin = Origin(start.workflow, start.version)
            runs.append(new_run(start.plan, requested, origin, checked, idempotency_key=key, files=files))
        return runs, failures

    async def _loaded(self, id: str, event: Event, failures: list[str]) -> tuple[str, Event] | None:
        """Return the event with its value, or None if it has none, which no further try would change."""
        try:
            return id, replace(event, value=await event.loaded())
        except BlockError as error:
            failures.append(self._parts.redactor.redact(f"event {event.id[:80]}: {error}"[:ERROR_CHARS_MAX]))
            return None

    async def _fail(self, row: ScheduleRow, claim: Poll, state: State | None, error: Exception) -> None:
        """Record why there was no poll, and when the next one is: later with each failure in a row."""
        is_ours = not isinstance(error, WeftError | CompileError | TimeoutError)
        text = "internal error; see the server log" if is_ours else str(error)[:ERROR_CHARS_MAX]
        if isinstance(error, TimeoutError):
            text = f"the source did not answer within {READ_S:g} seconds"
        text = self._parts.redactor.redact(text)
        log.warning("the poll of %s failed: %s", row.id, text, exc_info=is_ours)
        now_ms = self._clock.now_ms()
        failures = (state.failures if state is not None else _failures_of(row)) + 1
        wait_ms = (cron.parse(row.cron, row.tz).next(now_ms) or now_ms) - now_ms
        next_ms = now_ms + min(wait_ms * 2 ** min(failures - 1, 20), max(wait_ms, BACKOFF_MAX_MS))
        if isinstance(error, BlockError) and error.retry_at_ms is not None:
            next_ms = max(next_ms, error.retry_at_ms)
        claim = replace(
            claim,
            next_run_at_ms=next_ms,
            now_ms=now_ms,
            state=encode(-failures if state is None else replace(state, failures=failures)),
            error=text,
            failures=(text,) if failures == 1 else (),
            alerts=await self._alerts_of(row, now_ms) if failures == ALERT_AT else (),
        )
        try:
            await self._store.record_poll(claim)
        except StoreError as failed:
            log.warning("the failed poll of %s is not recorded: %s", row.id, failed)


def _grouped(
    events: list[tuple[str, Event]], polling: Polling, state: State | None, now_ms: int
) -> tuple[list[Group], State]:
    """Divide events into those of each run, and return how those are waited with that are left: the source has them
    until then, as the position stays before them."""
    size = polling.batch_max or (BATCH_MAX if polling.groups else 1)
    groups = [events[at : at + size] for at in range(0, len(events), size)]
    if state is None or not events or not (polling.batch_within_s or polling.debounce_s):
        return groups, State()
    count = len(events)
    left = State(
        waiting=count,
        first_ms=state.first_ms if state.waiting else now_ms,
        last_ms=state.last_ms if state.waiting == count else now_ms,
    )
    full = count // size
    if full and not polling.debounce_s:
        rest = count - full * size
        return groups[:full], State(waiting=rest, first_ms=now_ms, last_ms=now_ms) if rest else State()
    return (groups, State()) if now_ms >= _until_ms(left, polling, now_ms) else ([], left)


def _until_ms(left: State, polling: Polling, now_ms: int) -> int:
    """Return the time at which events that wait start a run: when none has come for a while, or at the latest."""
    within_ms = round((polling.batch_within_s or polling.debounce_s * DEBOUNCES_MAX) * 1000)
    latest_ms = left.first_ms + within_ms
    quiet_ms = left.last_ms + round(polling.debounce_s * 1000) if polling.debounce_s else latest_ms
    return min(latest_ms, quiet_ms)


def _state_of(row: ScheduleRow) -> State | None:
    found = decode(row.poll or b"null")
    return convert(found, State) if isinstance(found, dict) else None


def _failures_of(row: ScheduleRow) -> int:
    """Return the failures in a row of a poll that has not seen its source."""
    found = decode(row.poll or b"null")
    return -found if isinstance(found, int) else 0


class _Seen(Container[str]):
    def __init__(self, digests: Sequence[str]) -> None:
        self._digests = frozenset(digests)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and digest(id) in self._digests


class _Asking:
    """The part of an attempt that a poll has. It belongs to no run, and nothing of it is recorded."""

    number = 1

    def __init__(self, name: str, workflow: str, node: Node, services: Services, parts: Parts) -> None:
        self.run_id = self.idempotency_key = name
        self.workflow = workflow
        self.node = node
        self.key_text, self.type = node.block, node.type
        self.services = services
        self.connections = parts.connections
        self.clock = parts.clock.now_ms

    def log(self, *values: object) -> None:
        log.debug("%s: %s", self.run_id, " ".join(map(str, values)))

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()

    queueing = waiting

    def over(self) -> Over:
        return Over()

"""Runs that are kept as tests, and documents played against recorded runs; `engine.backtests`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import orjson
from msgspec import Struct

from executor.errors import BadRequest, Conflict, CorruptJournal, NotFound
from executor.kernel.journal.reader import load_plan
from executor.kernel.read.find import find_run, find_version
from executor.kernel.run.compiler import plan_of
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.upkeep import KeptRun
from executor.kernel.values.redact import MARK
from executor.service.parts import Parts, Topic
from executor.service.replay.compare import RunReplay, compare
from executor.service.replay.play import TIME_MAX_S, Play, alone
from executor.service.replay.recording import Inputs, NotPlayed, read
from executor.service.topics.workflows import without_pins

log = logging.getLogger("weft.backtests")

KEPT_MAX: Final = 200  # of one workflow
LAST_MAX: Final = 1_000  # runs of one backtest
PAGE: Final = 50  # runs of one answer
PAGE_S: Final = 3.0  # after so long an answer has what there is by then
ROWS_PAGE: Final = 100


class KeptView(Struct, frozen=True):
    """A run that is kept as a test: no upkeep deletes it."""

    run: str
    workflow: str
    note: str
    kept_at_ms: int


class Backtest(Struct, frozen=True):
    """A part of a backtest. `total`: how many runs the whole of it has, in the first part. `next`: pass it as `before`
    for the following part, with `last` less the runs of this one; null at the end."""

    runs: tuple[RunReplay, ...]
    total: int
    next: str | None


class Backtests(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._one = asyncio.Semaphore(1)  # a replay holds a whole run in memory

    # --- kept runs ---

    async def keep(self, run: str, note: str = "") -> KeptView:
        """Keep an ended run as a test, or change its note. Raises NotFound, Conflict (run_open, kept_limit)."""
        row = await find_run(self._store, run)
        kept = {each.run: each.at_ms for each in await self._store.kept_runs(row.workflow, KEPT_MAX)}
        if len(kept) >= KEPT_MAX and run not in kept:
            message = f"workflow '{row.workflow}' has {KEPT_MAX} kept runs, which is the limit"
            raise Conflict(message, code="kept_limit", hint="remove one that tests nothing more")
        data = self._parts.redactor.redact(note).encode()
        now_ms = self._clock.now_ms()
        if not await self._store.keep_run(run, data, now_ms):
            raise Conflict(f"run {run} has not ended", code="run_open", hint="keep it when it has ended, or cancel it")
        return _kept_view(KeptRun(run, row.workflow, kept.get(run, now_ms), data))

    async def drop(self, run: str) -> bool:
        """Keep it no longer. Returns False if it was not kept. Raises NotFound."""
        await find_run(self._store, run)
        return await self._store.drop_kept_run(run)

    async def kept(self, workflow: str | None = None) -> list[KeptView]:
        """Return the kept runs: the one that was kept last comes first."""
        return [_kept_view(each) for each in await self._store.kept_runs(workflow, LAST_MAX)]

    # --- replay ---

    async def play(
        self,
        workflow: str,
        *,
        document: Any = None,
        draft: str | None = None,
        version: int | None = None,
        kept: bool = False,
        last: int = LAST_MAX,
        before: str | None = None,
    ) -> Backtest:
        """Play a document, by default the active version, against runs of the workflow that have ended, the newest
        first: those that are kept, or the last ones, after run `before`. Nothing outside is called. Raises NotFound,
        CompileError."""
        wanted = without_pins(await self._document(workflow, document, draft, version))
        plan_of(await self._parts.compiler.compile(wanted))
        player = _Player(self._parts, wanted)
        loop = asyncio.get_running_loop()
        found: list[RunReplay] = []
        total = min(last, await self._count(workflow, kept))
        until_s, behind = loop.time() + PAGE_S, before
        async with self._one:
            async for row in self._rows(workflow, kept, before):
                if len(found) >= min(PAGE, last) or (found and loop.time() > until_s):
                    return Backtest(tuple(found), total, behind if len(found) < last else None)
                found.append(await player.played(row))
                behind = row.id
        return Backtest(tuple(found), total, None)

    async def _document(self, workflow: str, document: Any, draft: str | None, version: int | None) -> Any:
        if sum(each is not None for each in (document, draft, version)) > 1:
            hint = "give one of them, or none for the active version"
            raise BadRequest("document, draft and version exclude each other", code="too_many_documents", hint=hint)
        if document is not None:
            return document
        if draft is None:
            return orjson.loads((await find_version(self._store, workflow, version)).document)
        row = await self._store.get_draft(draft)
        if row is None:
            raise NotFound(f"there is no draft '{draft}'", code="draft_not_found")
        return orjson.loads(row.document)

    async def _rows(self, workflow: str, kept: bool, before: str | None) -> AsyncIterator[RunRow]:
        if kept:
            for each in _after(await self._store.kept_runs(workflow, KEPT_MAX), before):
                row = await self._store.get_run(each.run)
                if row is not None:
                    yield row
            return
        while page := await self._store.list_runs(workflow, before=before, limit=ROWS_PAGE):
            before = page[-1].id
            for row in page:
                if row.status in TERMINAL:
                    yield row

    async def _count(self, workflow: str, kept: bool) -> int:
        if kept:
            return len(await self._store.kept_runs(workflow, KEPT_MAX))
        counts = await self._store.count_runs(workflow)
        return sum(counts.get(status, 0) for status in TERMINAL)


def _after(kept: list[KeptRun], before: str | None) -> list[KeptRun]:
    names = [each.run for each in kept]
    return kept[names.index(before) + 1 :] if before in names else kept


def _kept_view(kept: KeptRun) -> KeptView:
    return KeptView(kept.run, kept.workflow, kept.note.decode(), kept.at_ms)


class _Player:
    """One document, played against runs one after the other. What their plans share is made once."""

    def __init__(self, parts: Parts, document: Any) -> None:
        self._parts = parts
        self._document = document
        self._inputs: dict[str, Inputs] = {}  # by the trigger of a new plan, or the hash of an old one
        secret = dict.fromkeys((*parts.services.secrets, *parts.services.kept), MARK)
        self._env = {**parts.services.env, **secret}

    async def played(self, row: RunRow) -> RunReplay:
        try:
            return await self._played(row)
        except NotPlayed as error:
            reason = str(error)
        except TimeoutError:
            reason = f"its replay takes longer than {TIME_MAX_S:g} s"
        except (CorruptJournal, NotFound) as error:
            reason = error.message
        except Exception:  # a bug of ours, or of a block: the other runs can be played
            log.exception("run %s could not be played", row.id)
            reason = "its replay failed, and the log of the server has the error"
        return RunReplay(row.id, row.workflow, row.version, row.created_at_ms, row.status, "not_replayed", reason)

    async def _played(self, row: RunRow) -> RunReplay:
        parts = self._parts
        old = await load_plan(parts.store, row.plan_hash)
        known = self._inputs.setdefault(old.hash, Inputs(old, parts.registry))
        recording = await read(parts.store, row, known, self._env)
        if any(old.nodes[number].sentinel for number in recording.started.reuse):
            raise NotPlayed("it reuses a container of another run: what happened inside is recorded there")
        new = (await parts.compiler.compile(self._document, old.trigger)).plan
        if new is None or new.trigger != old.trigger:
            raise NotPlayed(f"it began at '{old.trigger}', where no run of this document can begin")
        inputs = self._inputs.get(new.trigger)
        if inputs is None:
            inputs = self._inputs[new.trigger] = Inputs(alone(new), parts.registry)
        played = await Play(parts, recording, inputs, self._env).play()
        return await compare(recording, played, inputs.plan, parts.registry)

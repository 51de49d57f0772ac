"""Runs that are kept as tests, and recorded runs replayed with a document; `engine.backtests`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from executor.errors import BadRequest, Conflict, CorruptJournal, NotFound
from executor.kernel.core.events import RunStarted
from executor.kernel.journal.reader import load_plan
from executor.kernel.read.find import find_run, find_version
from executor.kernel.run.compiler import plan_of
from executor.kernel.run.meters import usage_row
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.upkeep import KeptRun
from executor.kernel.store.topics.usage import DELETED
from executor.kernel.values.payload import encode
from executor.kernel.values.redact import MARK
from executor.service.parts import Parts, Topic
from executor.service.replay.calling import Budget
from executor.service.replay.compare import RunReplay, compare, of_row
from executor.service.replay.evaluate import (
    DataRow,
    Evaluation,
    Judge,
    Scored,
    Scorer,
    compared,
    judge_of,
    scored_part,
    verdict,
    with_model,
    with_pins,
)
from executor.service.replay.play import TIME_MAX_S, Play, alone
from executor.service.replay.recording import Inputs, NotPlayed, Recording, read
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
    for the following part, with `last` less the runs of this one; null at the end. Of rows, the following part has
    those that are not in this one. `spent_usd`: what calls of models cost, those of a judge too."""

    runs: tuple[RunReplay, ...]
    total: int
    next: str | None
    spent_usd: float = 0.0


class Backtests(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._one = asyncio.Semaphore(1)  # a replay holds a whole run in memory
        self._one_calling = asyncio.Semaphore(1)

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
        evaluation: Evaluation | None = None,
    ) -> Backtest:
        """Replay runs of the workflow that have ended with a document, by default the active version, the newest
        first: those that are kept, or the last ones, after run `before`; or on rows. Nothing outside is called but
        models, if they may be. Raises NotFound, CompileError, BadRequest."""
        wanted = without_pins(await self._document(workflow, document, draft, version))
        asked = evaluation or Evaluation()
        if asked.model is not None:
            wanted = with_model(wanted, asked.model)
        plan_of(await self._parts.compiler.compile(wanted))
        budget = None if asked.call_models is None else Budget(asked.call_models.budget_usd)
        player = _Player(self._parts, wanted, budget)
        scores = None if asked.score is None else await self._scores(asked.score, budget)
        loop = asyncio.get_running_loop()
        found: list[RunReplay] = []
        last = last if asked.rows is None else len(asked.rows)
        total = last if asked.rows is not None else min(last, await self._count(workflow, kept))
        until_s, behind, more = loop.time() + PAGE_S, before, None
        async with self._one if budget is None else self._one_calling:
            async for row, given in self._rows(workflow, kept, before, asked.rows):
                if len(found) >= min(PAGE, last) or (found and loop.time() > until_s):
                    more = behind if len(found) < last else None
                    break
                try:
                    played, output = await player.played(row, given)
                    found.append(played if scores is None else await scores.of(row, given, played, output))
                finally:  # also if the request was given up: it is paid
                    await self._record(workflow, budget)
                behind = row.id
        if budget is not None and budget.spent_usd:
            log.info("backtest of %s: %s dollars spent for models", workflow, budget.spent_usd)
        return Backtest(tuple(found), total, more, 0.0 if budget is None else budget.spent_usd)

    async def _record(self, workflow: str, budget: Budget | None) -> None:
        """Add what calls of models used to the usage of the workflow."""
        if budget is not None and budget.calls:
            now_ms = self._clock.now_ms()
            rows = [usage_row(DELETED, workflow, model, used, now_ms) for model, used in budget.calls]
            budget.calls.clear()
            await self._store.add_usage(rows)

    async def _scores(self, scorer: Scorer, budget: Budget | None) -> _Scores:
        """Raises NotFound, BadRequest, CompileError."""
        judge = None
        if scorer.by == "judge":
            given = scorer.judge or Judge()
            if budget is None:
                hint = "give call_models with budget_usd: what the judge costs is a part of it"
                raise BadRequest("/score/by: a judge asks a model", code="judge_not_called", hint=hint)
            if given.workflow is None:
                document: Any = judge_of(given)
            else:
                document = orjson.loads((await find_version(self._store, given.workflow, None)).document)
            plan_of(await self._parts.compiler.compile(document))
            judge = _Player(self._parts, without_pins(document), budget)
        return _Scores(self._parts, scorer, judge)

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

    async def _rows(
        self, workflow: str, kept: bool, before: str | None, rows: list[DataRow] | None
    ) -> AsyncIterator[tuple[RunRow, DataRow | None]]:
        for number, given in enumerate(rows or (), 1):
            yield _of_data(given, number, workflow, self._clock.now_ms())
        if rows is not None:
            return
        if kept:
            for each in _after(await self._store.kept_runs(workflow, KEPT_MAX), before):
                row = await self._store.get_run(each.run)
                if row is not None:
                    yield row, None
            return
        while page := await self._store.list_runs(workflow, before=before, limit=ROWS_PAGE):
            before = page[-1].id
            for row in page:
                if row.status in TERMINAL:
                    yield row, None

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


def _of_data(given: DataRow, number: int, workflow: str, now_ms: int) -> tuple[RunRow, DataRow]:
    """Return the run that a row would be."""
    row = RunRow(
        str(number), workflow, None, "", "queued", encode(given.input), None, None, 0, 0, None, None, None, None, "",
        None, None, now_ms, None, None,
    )  # fmt: skip
    return row, given


class _Player:
    """One document, with which runs are replayed one after the other. What their plans share is made once."""

    def __init__(self, parts: Parts, document: Any, budget: Budget | None) -> None:
        self._parts = parts
        self._budget = budget
        self._document = document
        self._inputs: dict[str, Inputs] = {}  # by the trigger of a new plan, or the hash of an old one
        secret = dict.fromkeys((*parts.services.secrets, *parts.services.kept), MARK)
        self._env = {**parts.services.env, **secret}

    async def played(self, row: RunRow, given: DataRow | None) -> tuple[RunReplay, bytes | None]:
        """Return the result, and the output of the run as it is played. Raises BadRequest: a row has another pin."""
        try:
            return await (self._played(row) if given is None else self._new(row, given))
        except NotPlayed as error:
            reason = str(error)
        except TimeoutError:
            reason = f"its replay takes longer than {TIME_MAX_S:g} s"
        except (CorruptJournal, NotFound) as error:
            reason = error.message
        except BadRequest:
            raise
        except Exception:  # a bug of ours, or of a block: the other runs can be replayed
            log.exception("run %s could not be replayed", row.id)
            reason = "its replay failed, and the log of the server has the error"
        head = row.id, row.workflow, row.version, row.created_at_ms, row.status
        return RunReplay(*head, "not_replayed", reason), None

    async def _new(self, row: RunRow, given: DataRow) -> tuple[RunReplay, bytes | None]:
        parts = self._parts
        plan = alone(plan_of(await parts.compiler.compile(with_pins(self._document, given.pins))))
        recording = Recording(row, plan, RunStarted(row.id), {})
        played = await Play(parts, recording, Inputs(plan, parts.registry), self._env, self._budget).play()
        return of_row(recording, played, parts.registry), played.output

    async def _played(self, row: RunRow) -> tuple[RunReplay, bytes | None]:
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
        played = await Play(parts, recording, inputs, self._env, self._budget).play()
        return await compare(recording, played, inputs.plan, parts.registry), played.output


class _Scores:
    """Scores what was played, with a judge if there is one."""

    def __init__(self, parts: Parts, scorer: Scorer, judge: _Player | None) -> None:
        self._sandbox = parts.services.sandbox
        self._scorer = scorer
        self._judge = judge

    async def of(self, row: RunRow, given: DataRow | None, played: RunReplay, output: bytes | None) -> RunReplay:
        scorer = self._scorer
        if played.now != "succeeded":
            return replace(played, score=Scored(None, played.reason or f"the run has {played.now}"))
        value, input = scored_part(output, scorer.at), orjson.loads(row.input)
        expected = scored_part(row.output, scorer.at) if given is None else given.expected
        expected = expected if scorer.expected is None else scorer.expected
        score = await compared(scorer, value, expected, self._sandbox)
        if self._judge is not None:
            asked = DataRow({"input": input, "output": value, "expected": expected})
            judged, said = await self._judge.played(*_of_data(asked, 1, "judge", row.created_at_ms))
            ended = judged.now == "succeeded" and said is not None
            found, why = verdict(scored_part(said, "")) if ended else (None, f"the judge: {judged.reason}")
            score = replace(score, value=found, reason=why)
        return replace(played, score=score)

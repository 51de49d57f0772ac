"""From rows to a run loop: fold the journal, find out what was under way. A new run is just a short journal; of a long
one a snapshot (`snapshots.py`) has the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.plan import Plan
from executor.errors import BlockError, CorruptJournal, Fenced
from executor.kernel.core import commands as c
from executor.kernel.core import facts as f
from executor.kernel.core.commands import outstanding
from executor.kernel.core.events import ErrorInfo
from executor.kernel.journal.reader import load_plan
from executor.kernel.run.adoption import Adoption, Taken
from executor.kernel.run.attempts import Attempts
from executor.kernel.run.loaded import LoadedRun, replay
from executor.kernel.run.loop import RunLoop
from executor.kernel.run.owned import Parked
from executor.kernel.run.parts import Parts
from executor.kernel.run.recorder import Recorder
from executor.kernel.run.results import Arrivals
from executor.kernel.run.snapshots import ignored, load_snapshot
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.places import USED, PlaceRow


def begin(parts: Parts, adoption: Adoption, plan: Plan) -> tuple[RunLoop, list[f.Fact]]:
    """Return the loop and first facts of a run that is not created yet: nothing is read."""
    run = LoadedRun.empty(adoption.row, plan, parts.vault.values)
    recorder = Recorder(run, parts)
    for record in adoption.new.records:
        run.apply(record, record.output)
        recorder.stand_at(record.seq, record.at_ms)
    loop = RunLoop(run, parts, recorder, Attempts(run.id, parts, Arrivals()), adoption)
    return loop, _first_facts(parts.clock.now_ms(), run, loop)


async def recover(
    parts: Parts,
    row: RunRow,
    attempts: Attempts | None = None,
    parked: Parked | None = None,
    adoption: Taken[Any] | None = None,
) -> tuple[RunLoop, list[f.Fact]]:
    """Return the loop of a claimed run, and the facts that it begins with. `attempts`: those under way of an earlier
    loop of this lease; they are not lost. `parked`: the run as it left memory. `adoption`: it is claimed with its first
    append. Raises CorruptJournal when the journal does not fold, Fenced when another worker has claimed the run."""
    run = parked.claimed(row) if parked is not None else None
    if run is not None and parked is not None:
        at_ms = parked.at_ms
    else:
        run, at_ms = await _read(parts, row)
    recorder = Recorder(run, parts)
    recorder.stand_at(run.state.seq, at_ms)
    if run.notes.continues:
        recorder.continue_with(await parts.further_runs.make_next_again(run))
    if attempts is None:
        attempts = Attempts(row.id, parts, Arrivals())
    places = await _places_of_before(parts, run) if adoption is None else []
    if places:
        recorder.leave_places()
    loop = RunLoop(run, parts, recorder, attempts, adoption)
    return loop, _first_facts(parts.clock.now_ms(), run, loop, places)


async def _read(parts: Parts, row: RunRow) -> tuple[LoadedRun, int]:
    plan = await load_plan(parts.store, row.plan_hash)
    try:
        return await _folded(parts, row, plan)
    except CorruptJournal:
        now = await parts.store.get_run(row.id)
        if now is None or now.epoch != row.epoch:
            raise Fenced from None  # another worker has added to it
        raise


async def _places_of_before(parts: Parts, run: LoadedRun) -> list[PlaceRow]:
    """Places of limits that attempts of earlier leases had, or waited for: free since this one."""
    if run.row.epoch < 2 or not run.plan.has_limits:
        return []
    places = [place for place in await parts.store.places_of(run.id) if place.epoch != run.row.epoch]
    parts.places.release({place.key for place in places})
    return places


async def _folded(parts: Parts, row: RunRow, plan: Plan) -> tuple[LoadedRun, int]:
    saved = await load_snapshot(parts, row, plan)
    if saved is not None:
        try:
            return saved, await replay(parts.store, saved)
        except (AssertionError, LookupError, ValueError, TypeError, BlockError, CorruptJournal) as error:
            ignored(row.id, f"the journal does not follow it: {error!r}")
    run = LoadedRun.empty(row, plan, parts.vault.values)
    return run, await replay(parts.store, run)


def _first_facts(now_ms: int, run: LoadedRun, loop: RunLoop, places: Sequence[PlaceRow] = ()) -> list[f.Fact]:
    """`places`: of earlier leases. An attempt that had not got its place had not begun, so it is not lost."""
    waited = {(place.node, place.attempt): place.key for place in places if place.state != USED}
    first: list[f.Fact] = [] if run.state.parked else [f.Recovered(now_ms, run.row.former_owner is not None)]
    under_way = loop.attempts.keys()
    for command in outstanding(run.plan, run.state):
        match command:
            case c.RunNode(key, attempt) if (run.codec.key_text(key), attempt) in waited and key not in under_way:
                limit = waited[run.codec.key_text(key), attempt]
                message = f"the process ended while the block waited for limit {limit}"
                error = ErrorInfo("not_begun", message, True, run.plan.nodes[key[1]].block)
                first.append(f.NodeErred(now_ms, key, attempt, error, deferred="not_begun"))
            case c.RunNode(key, attempt) if key not in under_way:
                first.append(f.AttemptLost(now_ms, key, attempt, run.row.lost_together))
            case c.SetTimer():
                loop.set_timer(command)
            case _:
                pass
    return first

"""What must be true when all is over: the reference model, the invariants, and what clients were told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from compiler import plan as plans
from compiler.plan import Plan
from executor.kernel.core import events as e
from executor.kernel.journal.codec import Codec
from executor.kernel.store.run_rows import Record
from executor.kernel.store.sqlite.reading import SQLiteReading
from executor.kernel.store.statements import TERMINAL
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from tests.simulation.check import agree
from tests.simulation.world.script import CHILD
from tests.support.core.watch import Broken, Observed, Watch, require

if TYPE_CHECKING:
    from tests.simulation.world.world import World

# In a calm world: an idle worker looks every 5 s, leases are renewed every 5 s, each with some commits in between.
PROMPT_S = 12.0

_RUN = "SELECT id, workflow, status, plan_hash, output, parent_run_id, parent_key FROM runs ORDER BY created_at_ms, id"
_EVENTS = "SELECT seq, at_ms, type, node, path, attempt, data, output FROM events WHERE run_id = ? ORDER BY seq"
_SIGNALS_USED = """
SELECT run_id, id, (SELECT count(*) FROM signals AS s WHERE s.run_id = w.run_id AND s.consumed_by = w.id)
  FROM waits AS w WHERE kind = 'signal' AND status = 'answered'"""
_BLOB = "SELECT bytes FROM blobs WHERE hash = ?"


class RunAtEnd(msgspec.Struct):
    id: str
    workflow: str
    status: str
    plan_hash: str
    output: bytes | None
    parent: str | None
    parent_key: str | None
    records: list[Record] = []

    def told(self, n: int) -> dict[str, Any]:
        """What event `n` of its journal says."""
        data: dict[str, Any] = orjson.loads(self.records[n].data or b"{}")
        return data


def pronounce(world: World) -> dict[str, Observed]:
    """By run id what it came to. Raises Broken with the first thing that is wrong."""
    runs = {row[0]: RunAtEnd(*row) for row in world.disk.db.execute(_RUN).fetchall()}
    for run in runs.values():
        run.records = [Record(*row) for row in world.disk.db.execute(_EVENTS, (run.id,)).fetchall()]
        require(run.status in TERMINAL, f"run {run.id} is {run.status} at the end")
    told = world.clients.told
    transcripts = {id: [_seen(record) for record in all[0]] for id, all in told.transcripts.items()}
    for finding in check(SQLiteReading(world.disk.db), evidence=Evidence(told.all_runs, transcripts)):
        raise Broken(f"{finding.invariant}: {finding.what} (run {finding.run} {finding.node})")
    observed = {run.id: _journal(world, run) for run in runs.values()}
    held = world.disk.db.execute("SELECT key, n FROM slots WHERE freed = 0").fetchall()
    require(not held, f"no run is left, and places of limits are held: {held}")
    left = world.disk.db.execute("SELECT n, node, attempt, epoch, state FROM places").fetchall()
    require(not left, f"no run is left, and blocks have places, or wait for them: {left}")
    for run in runs.values():
        _outputs(world, run, runs)
        _output_of(world, run)
    _chains(runs)
    _submits(world)
    _answers(world, runs)
    _signals(world)
    _prompt(world)
    for id, all in told.transcripts.items():
        same = all.count(runs[id].records) == len(all)
        require(same, f"a follower of run {id} got something else than its journal")
    return observed


def audit(world: World) -> None:
    """The invariants, of a world that is running. Raises Broken."""
    for finding in check(SQLiteReading(world.disk.db)):
        raise Broken(f"in between, {finding.invariant}: {finding.what} (run {finding.run} {finding.node})")


def _seen(record: Record) -> dict[str, Any]:
    names = ("seq", "at_ms", "type", "node", "path", "attempt")
    return {name: getattr(record, name) for name in names}


def _plan(world: World, run: RunAtEnd) -> Plan:
    ((ir,),) = world.disk.db.execute("SELECT ir FROM plans WHERE hash = ?", (run.plan_hash,)).fetchall()
    return plans.decode(ir)


def _journal(world: World, run: RunAtEnd) -> Observed:
    """Every event by the rules that hold whatever the workflow is, and the whole by the reference model."""
    plan = _plan(world, run)
    codec, watch = Codec(plan), Watch(plan)
    for record in run.records:
        event = codec.to_event(record)
        if isinstance(event, e.WaitOpened) and event.kind == "attention":
            watch.unclear.add(event.key)  # the ledger saw that it was lost
        try:
            watch.event(event, record.at_ms)
        except Broken as error:
            raise Broken(f"run {run.id}, event {record.seq} ({record.type}): {error}") from error
    require(watch.seen.status == run.status, f"run {run.id} is {run.status}, its journal says {watch.seen.status!r}")
    if run.workflow != CHILD:
        try:
            agree(world.cases[run.workflow].verdict, watch.seen)
        except Broken as error:
            raise Broken(f"run {run.id}: {error}") from error
    return watch.seen


def _outputs(world: World, run: RunAtEnd, runs: dict[str, RunAtEnd]) -> None:
    """The output of a block is the one of the attempt that is said to have made it."""
    children = {(r.parent, r.parent_key): r for r in runs.values() if r.parent is not None}
    attempts = world.ledger.begun
    for record in run.records:
        key = f"{record.node}@{record.path}" if record.path else record.node
        output, data = orjson.loads(_output(world, record)), orjson.loads(record.data or b"{}")
        if record.type != "node.succeeded" or not isinstance(output, dict):
            continue
        where = f"run {run.id}, {key}"
        child = children.get((run.id, f"{key}!{record.attempt}"))
        if child is not None:
            require(output == orjson.loads(child.output or b"null"), f"{where}: not its child's output")
            require(output.get("run") == child.id, f"{where}: the output of another run than its child")
        elif data.get("cached"):
            require(
                output["variant"] == world.variants[_first(run, runs).id], f"{where}: a cached output of another schema"
            )
            require(output["label"] == key, f"{where}: a cached output of another block")
        elif "pad" in output:
            require(output["attempt"] == record.attempt, f"{where}: the output of another attempt")
            inline = (run.id, record.node, record.path, record.attempt) not in attempts
            steps = output.get("steps")
            same = steps is None or steps == world.ledger.steps.outcomes((run.id, str(record.node), record.path or ""))
            require(same, f"{where}: other outputs of steps than its journal has: {steps}")
            require(not inline or world.inline(run.workflow, str(record.node)), f"{where}: succeeded, and never ran")
        elif "payload" in output:
            require(output["payload"] == {"label": key}, f"{where}: the signal of another wait")


def _first(run: RunAtEnd, runs: dict[str, RunAtEnd]) -> RunAtEnd:
    """Of its chain: the one that a client has submitted."""
    while (before := run.told(0).get("continues")) is not None:
        run = runs[before]
    return run


def _output_of(world: World, run: RunAtEnd) -> None:
    """A run puts out what its last blocks did; some of that may have been read back from the journal."""
    last = run.records[-1]
    if run.status != "succeeded" or any(name in (last.data or b"") for name in (b'"response"', b'"continued_as"')):
        return
    plan = _plan(world, run)
    ends = {plan.nodes[number].id: plan.nodes[number].name for number in plan.root_ends}
    wired = {plan.nodes[number].id: handles for number, handles in plan.wired_handles.items()}
    of_root = [r for r in run.records if not r.path and r.node in ends and _ran(r)]
    ran = [r for r in of_root if _route(r) not in wired.get(str(r.node), ())]
    output = orjson.loads(_output(world, last))
    for record in ran:
        if record.type == "node.succeeded":
            found = output if len(ran) == 1 else output.get(ends[str(record.node)])
            same = found == orjson.loads(_output(world, record))
            require(same, f"run {run.id} puts out something else than its block {record.node} did")


def _ran(record: Record) -> bool:
    passed = record.type == "node.failed" and orjson.loads(record.data or b"{}").get("route") == "out"
    return passed or record.type in ("node.succeeded", "region.exited")


def _route(record: Record) -> str | None:
    route: str | None = orjson.loads(record.data or b"{}").get("route", "out")
    return route


def _output(world: World, record: Record) -> bytes:
    if record.output is not None:
        return record.output
    with suppress(KeyError):
        hash = orjson.loads(record.data or b"{}")["blob"]
        rows = world.disk.db.execute(_BLOB, (hash,)).fetchall()
        require(rows, f"the output of event {record.seq} is not there")
        return bytes(rows[0][0])
    return b"{}"


def _chains(runs: dict[str, RunAtEnd]) -> None:
    """A run that continues another one is there if and only if that one has ended with it."""
    before = {id: run.told(0).get("continues") for id, run in runs.items()}
    after = {id: run.told(-1).get("continued_as") for id, run in runs.items()}
    for id, run in runs.items():
        if (old := before[id]) is not None:
            require(after.get(old) == id, f"run {id} continues run {old}, which has ended with {after.get(old)}")
        if (new := after[id]) is not None:
            require(new in before and before[new] == id, f"run {id} is continued by {new}, which is not there")
        says = any(record.type == "run.continuing" for record in run.records) and run.status == "succeeded"
        require(says == (new is not None), f"run {id} is {run.status} and has the next run {new}")


def _submits(world: World) -> None:
    for key, ids in world.clients.told.runs.items():
        stored = world.disk.db.execute("SELECT id FROM runs WHERE idempotency_key = ?", (key,)).fetchall()
        require(ids == {id for (id,) in stored}, f"{key!r} was submitted as {sorted(ids)}, there is {stored}")


def _answers(world: World, runs: dict[str, RunAtEnd]) -> None:
    query = "SELECT status, answered_by FROM waits WHERE run_id = ? AND id = ?"
    for (run, wait), names in world.clients.told.answers.items():
        require(len(names) == 1, f"wait {wait} of run {run}: {sorted(names)} were all told that they answered it")
        ((status, by),) = world.disk.db.execute(query, (run, wait)).fetchall()
        told = f"wait {wait} of run {run} was answered by {names}, its row says {status} by {by}"
        require((status, by) == ("answered", *names), told)
        for closed in _closed(runs[run], wait):
            cancelled = closed["outcome"] == "cancelled"
            kept = closed["outcome"] == "answered" and closed.get("by") == by
            require(cancelled or kept, f"wait {wait} of run {run}: {by} answered it, its journal says {closed}")


def _closed(run: RunAtEnd, wait: str) -> Iterator[dict[str, Any]]:
    for record in run.records:
        key = f"{record.node}@{record.path}" if record.path else record.node
        if record.type == "wait.closed" and f"{key}!{record.attempt}" == wait:
            yield orjson.loads(record.data or b"{}")


def _signals(world: World) -> None:
    query = "SELECT count(*) FROM signals WHERE run_id = ? AND dedupe_key = ?"
    for (run, key), new in world.clients.told.signals.items():
        ((stored,),) = world.disk.db.execute(query, (run, key)).fetchall()
        require(stored == 1, f"signal {key} was sent to run {run} and is there {stored} times")
        require(new <= 1, f"{new} clients were told that signal {key} to run {run} is new")
    for run, wait, used in world.disk.db.execute(_SIGNALS_USED).fetchall():
        require(used == 1, f"wait {wait} of run {run} used up {used} signals")


def _prompt(world: World) -> None:
    """Where no process dies, stalls or fails, everything is done within seconds, whatever wake-ups are lost."""
    if not world.faults.calm:
        return
    told, ledger = world.clients.told, world.ledger
    most_s = PROMPT_S + world.faults.sandbox_s  # a run hears of nothing while it computes
    for (run, wait), late_s in ledger.late_s.items():
        require(late_s < most_s, f"wait {wait} of run {run} was over {late_s:.1f} s after its time")
    for run, since_s in told.cancels.items():
        late_s = ledger.cancelling_s[run] - since_s
        require(late_s < most_s, f"run {run} heard of its cancel after {late_s:.1f} s")
    for (run, wait), since_s in told.answered_s.items():
        late_s = ledger.closed_s.get((run, wait), ledger.cancelling_s[run]) - since_s
        require(late_s < most_s, f"run {run} heard of the answer to {wait} after {late_s:.1f} s")

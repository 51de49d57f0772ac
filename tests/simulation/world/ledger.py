"""Looks at the database after each commit, and remembers: who wrote, what had started, what time it was.

It knows no Append and no function of the store, only rows: what a commit must not have done is seen from what is there
after it. At each commit:
  * the journal and the row of a run say the same (they were written together), and so do a child and its parent's wait;
  * only the owner of a run writes its journal, and no live owner loses its lease;
  * no timer, expiry or retry comes before its time; nothing is said to be lost while its owner lives;
  * a child whose parent does not wait for it any more has ended or is cancelled;
  * a process that claims a run anew has stopped what it did for it before;
  * the commit that hears of a cancel starts nothing, and no run ends that has not heard of one;
  * a run that is refused its sleep for what is in its inbox reads that before it lies down again;
  * no step of a handler begins again that has finished, or that may have changed something, unasked (steps.py);
  * no more runs than a limit allows have a place of it, and each that has an owner has its places.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from compiler.keys import CLEANUP_SUFFIX
from tests.simulation.world.steps import STEP_EVENTS, StepLedger

_RUNS = "SELECT id, seq, epoch, lease_owner, status, workflow FROM runs"
_EVENTS = "SELECT seq, at_ms, type, node, path, attempt, data FROM events WHERE run_id = ? AND seq > ? ORDER BY seq"
_INBOX = "SELECT n FROM inbox WHERE run_id = ?"
_COUNT = "SELECT count(*), coalesce(max(seq), 0) FROM events WHERE run_id = ?"
_WAIT_DUE = "SELECT expires_at_ms FROM waits WHERE run_id = ? AND id = ?"
_CANCELS = 'SELECT run_id, n FROM inbox WHERE instr(fact, \'"type":"cancel"\')'
_LEFT_ALONE = """
SELECT id FROM runs AS r WHERE parent_run_id = ? AND parent_key = ? AND finished_at_ms IS NULL
   AND NOT EXISTS (SELECT 1 FROM inbox WHERE run_id = r.id AND instr(fact, '"type":"cancel"'))
   AND NOT EXISTS (SELECT 1 FROM events WHERE run_id = r.id AND type = 'run.cancelling')"""
_LONE_CHILDREN = """
SELECT id FROM runs AS r WHERE parent_run_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM waits AS w WHERE w.run_id = r.parent_run_id AND w.id = r.parent_key)"""
_PLACES = "SELECT key, count(*) FROM slots WHERE freed = 0 AND node = '' GROUP BY key"
_WITHOUT_PLACE = """
SELECT h.id FROM heads AS h, json_each(h.limits) AS l
 WHERE h.owner IS NOT NULL AND h.cancel_n IS NULL
   AND NOT EXISTS (SELECT 1 FROM slots AS s
                    WHERE s.n = h.n AND s.key = json_extract(l.value, '$[0]') AND s.node = '' AND s.freed = 0)"""
_CHILDLESS = """
SELECT run_id, id FROM waits AS w WHERE kind = 'child'
   AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.parent_run_id = w.run_id AND r.parent_key = w.id)"""

# A process that drops a run stops its handlers then; so long it may take until all of them have heard of it.
HEARD_S = 1.0
# What runs ahead of its journal is on disk by then, where nothing fails.
PROMPT_S = 1.0

Key = tuple[str, str, str]  # run, node, path


class Seen(NamedTuple):
    seq: int
    epoch: int
    owner: str | None
    status: str


@dataclass
class Started:
    attempt: int
    epoch: int


@dataclass
class Ledger:
    """`now_s`: virtual time. `wall_ms`: the highest the wall clock ever showed. `complain` gets what is wrong.
    `disturbed`: when each process last was in trouble, infinite while it is. `clock_was_set`: ever."""

    db: sqlite3.Connection
    now_s: Callable[[], float]
    wall_ms: Callable[[], int]
    complain: Callable[[str], None]
    lease_s: float
    owners: dict[str, str] = field(default_factory=dict)  # worker name -> process
    disturbed: dict[str, float] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    clock_was_set: bool = False
    stolen: set[str] = field(default_factory=set)  # runs whose lease was made to end before its time
    runs: dict[str, Seen] = field(default_factory=dict)
    claimed_by: dict[str, str] = field(default_factory=dict)  # run -> process, by its epoch
    started: dict[Key, Started] = field(default_factory=dict)
    retries: dict[Key, int] = field(default_factory=dict)
    opened_ms: dict[Key, int] = field(default_factory=dict)
    begun: dict[tuple[str, str, str, int], tuple[str, int]] = field(default_factory=dict)  # by whom, in which epoch
    started_by: dict[tuple[str, str, str, int], tuple[str, int]] = field(default_factory=dict)  # the same, on disk
    begun_s: dict[tuple[str, str, str, int], float] = field(default_factory=dict)
    workflows: dict[str, str] = field(default_factory=dict)  # by run
    may_run_ahead: Callable[[str, str], bool] = lambda workflow, node: False  # begin before its start is on disk
    epochs: dict[tuple[str, str, str, int], int] = field(default_factory=dict)  # in which attempts were started
    acted_s: dict[tuple[str, int], float] = field(default_factory=dict)  # (run, epoch) -> when its first events came
    committed_s: dict[tuple[str, int], float] = field(default_factory=dict)
    committed_by: dict[tuple[str, int], str] = field(default_factory=dict)
    closed_s: dict[tuple[str, str], float] = field(default_factory=dict)  # (run, wait id) -> when it was closed
    late_s: dict[tuple[str, str], float] = field(default_factory=dict)  # how long after its time a wait was over
    cancels: set[tuple[str, int]] = field(default_factory=set)
    cancelling_s: dict[str, float] = field(default_factory=dict)  # run -> when it was cancelled, or ended
    looks_at_cancels: bool = False
    limits: dict[str, int] = field(default_factory=dict)  # of runs, by key
    unread: dict[tuple[str, int], set[int]] = field(default_factory=dict)  # (run, epoch) -> what kept it awake
    is_calm: Callable[[], bool] = lambda: False
    taken_over: Callable[[], None] = lambda: None
    opened: Callable[[], None] = lambda: None  # a wait
    let_go: Callable[[], set[str]] = set  # runs that the owner lets go of in the commit
    steps: StepLedger = field(init=False)
    progress_s: float = 0.0
    commits: int = 0
    events: int = 0

    def __post_init__(self) -> None:
        self.steps = StepLedger(self.db, self.complain)

    def committed(self, process: str) -> None:
        self.commits += 1
        db, before = self.db, self.runs
        cancels = set(db.execute(_CANCELS).fetchall()) if self.looks_at_cancels else self.cancels
        after: dict[str, Seen] = {}
        for run, seq, epoch, owner, status, workflow in db.execute(_RUNS).fetchall():
            now = after[run] = Seen(seq, epoch, owner, status)
            self.workflows[run] = workflow
            old = before.get(run)
            if old is None:
                old = Seen(0, 0, None, "")
            elif old == now:
                continue
            if now.epoch != old.epoch:
                self._claimed(process, run, old, now)
            if old.owner is not None and now.owner is None and not self._may_free(process, run):
                self.complain(f"{process} freed run {run}, which {self.claimed_by[run]} had claimed")
            if now.seq != old.seq:
                if before.get(run) is not None and process != self.claimed_by.get(run):
                    self.complain(f"{process} wrote events of run {run}, which {self.claimed_by.get(run)} had claimed")
                heard = {n for id, n in self.cancels - cancels if id == run}
                self._events(process, run, old, now, bool(heard))
        self.runs, self.cancels = after, cancels
        for run, seen in after.items():
            if before.get(run) != seen and db.execute(_COUNT, (run,)).fetchone() != (seen.seq, seen.seq):
                self.complain(f"a commit left run {run} with another journal than its row says ({seen.seq} events)")
        lone = [*db.execute(_LONE_CHILDREN).fetchall(), *db.execute(_CHILDLESS).fetchall()]
        if lone:
            self.complain(f"a commit left a child run without the wait for it, or a wait without its child: {lone}")
        if self.limits:
            self._look_at_limits()

    def _look_at_limits(self) -> None:
        for key, places in self.db.execute(_PLACES).fetchall():
            if places > self.limits[key]:
                self.complain(f"limit {key} allows {self.limits[key]} runs, and {places} have a place")
        owned = {run for (run,) in self.db.execute(_WITHOUT_PLACE).fetchall()}
        if without := owned - self.cancelling_s.keys():
            self.complain(f"a commit left runs with an owner and without a place of their limits: {sorted(without)}")

    def kept_awake(self, run: str, epoch: int) -> None:
        """An owner wanted to let go of its run and was refused. Asking again would do nothing else for ever."""
        inbox = {n for (n,) in self.db.execute(_INBOX, (run,)).fetchall()}
        if again := inbox & self.unread.get((run, epoch), set()):
            self.complain(f"run {run} lies down again without a look at {sorted(again)} of its inbox")
        self.unread[run, epoch] = inbox

    def epoch(self, run: str) -> int:
        """Of a run, which may be on its way to the disk: by who owns it from the first."""
        return self.runs[run].epoch if run in self.runs else 1

    def effect_begins(self, process: str, run: str, node: str, path: str, attempt: int) -> None:
        """A handler is called. What it depends on was committed with, or before, its start. Only one that changes
        nothing may be called before that, and called again by the next owner if its start was never committed."""
        key, where = (run, node, path, attempt), f"attempt {attempt} of {node}@{path} of run {run}"
        if run not in self.runs:
            self.complain(f"{where} runs, and the run is not on disk")
        ahead = self.may_run_ahead(self.workflows.get(run, ""), node)
        if ahead and process != self.claimed_by.get(run):
            return  # it was the owner: it will not be able to say what came of it
        if not (ahead or self.is_started(run, node, path, attempt)):
            self.complain(f"{where} runs, and its start is not on disk")
        by, before = (process, self.epoch(run)), self.begun.get(key)
        if before is not None and not (ahead and before not in (by, self.started_by.get(key))):
            self.complain(f"{where} runs a second time")
        self.begun[key] = by
        self.begun_s[key] = self.now_s()

    def is_started(self, run: str, node: str, path: str, attempt: int) -> bool:
        """Whether the start of this attempt is on disk."""
        started = self.started.get((run, node, path))
        return started is not None and started.attempt >= attempt

    def shown(self, run: str, node: str, path: str, attempt: int) -> None:
        """Readers get live text of an attempt, or it keeps a checkpoint."""
        if not self.is_started(run, node, path, attempt):
            self.complain(f"attempt {attempt} of {node}@{path} of run {run} is seen, and its start is not on disk")

    def effect_ends(self, process: str, run: str, node: str, path: str, attempt: int) -> None:
        """A handler has ended by itself."""
        late_s = self.now_s() - self.begun_s.get((run, node, path, attempt), math.inf)
        if late_s > PROMPT_S and self.is_calm() and not self.is_started(run, node, path, attempt):
            self.complain(
                f"attempt {attempt} of {node}@{path} of run {run} is not on disk {late_s:.1f} s after its start"
            )
        now = self.runs[run]
        anew = now.epoch > self.epochs.get((run, node, path, attempt), now.epoch) and self.claimed_by[run] == process
        if anew and self.acted_s.get((run, now.epoch), math.inf) < self.now_s() - HEARD_S:
            self.complain(f"attempt {attempt} of {node}@{path} runs on in {process}, which has claimed run {run} anew")

    # --- what one commit did to one run

    def _may_free(self, process: str, run: str) -> bool:
        return process == self.claimed_by[run] or self.clock_was_set  # see Worker: it looks for leases of another time

    def _claimed(self, process: str, run: str, old: Seen, now: Seen) -> None:
        self.claimed_by[run] = process
        stolen = run in self.stolen
        self.stolen.discard(run)
        if now.epoch != old.epoch + 1:
            self.complain(f"run {run} was claimed, its epoch went from {old.epoch} to {now.epoch}")
        if old.owner is None:
            return
        self.taken_over()
        owner = self.owners.get(old.owner, "")
        troubled = owner in self.dead or self.disturbed.get(owner, -math.inf) > self.now_s() - 2 * self.lease_s
        again = owner == process and run in self.let_go()  # and took it in the same commit, as it was due at once
        if not (troubled or again or self.clock_was_set or stolen):  # leases of another time may end at any time
            self.complain(f"{process} took run {run} from {owner}, which is alive and well")

    def _events(self, process: str, run: str, old: Seen, now: Seen, heard_of_cancel: bool) -> None:
        self.progress_s = self.now_s()
        # A run that had an owner: events beside a claim are of that owner, as a claim is only known after its commit.
        # One that had none is created, or continued by an answer, with the first events of its new owner.
        epoch = old.epoch if old.owner is not None else now.epoch
        self.acted_s.setdefault((run, epoch), self.now_s())
        rows = self.db.execute(_EVENTS, (run, old.seq)).fetchall()
        types = {type for _, _, type, *_ in rows}
        if (
            "run.finished" in types
            and run not in self.cancelling_s
            and "run.cancelling" not in types
            and heard_of_cancel
        ):
            self.complain(f"run {run} ended and had not heard that it was cancelled")
        for seq, _, type, node, path, attempt, data in rows:
            self.events += 1
            self.committed_s[run, seq] = self.now_s()
            self.committed_by[run, seq] = process
            key = (run, node, path)
            if type in STEP_EVENTS:
                self.steps.event(key, seq, type, attempt, orjson.loads(data))
            match type:
                case "node.started":
                    if (
                        heard_of_cancel
                        and CLEANUP_SUFFIX not in path
                        and not self.may_run_ahead(self.workflows[run], node)
                    ):
                        self.complain(f"the commit in which run {run} hears that it is cancelled starts {node}@{path}")
                    if self.wall_ms() < self.retries.pop(key, 0):
                        self.complain(f"{node}@{path} of run {run} is tried again before its time")
                    self.started[key] = Started(attempt, epoch)
                    self.epochs[*key, attempt] = epoch
                    self.started_by[*key, attempt] = self.claimed_by[run], epoch
                case "retry.scheduled":
                    told = orjson.loads(data)
                    self.retries[key] = told["due_ms"]
                    if told["error"]["code"] == "attempt_lost" and not self.steps.asked(key, attempt):
                        self._lost(key, attempt, epoch)
                case "node.failed":
                    if orjson.loads(data)["error"]["code"] == "attempt_lost":
                        self._lost(key, attempt, epoch)
                case "retry.hastened":
                    self.retries[key] = orjson.loads(data)["due_ms"]
                case "wait.opened":
                    self.opened_ms[key] = self.wall_ms()
                    self.opened()
                    if (told := orjson.loads(data))["kind"] == "attention" and "step" not in told:
                        self._lost(key, attempt, epoch)
                case "wait.closed":
                    self._closed(run, node, path, attempt, orjson.loads(data)["outcome"])
                case "run.cancelling" | "run.finished":
                    self.cancelling_s.setdefault(run, self.now_s())

    def _lost(self, key: Key, attempt: int, epoch: int) -> None:
        started = self.started.get(key)
        if started is not None and started.attempt == attempt and started.epoch == epoch:
            self.complain(f"attempt {attempt} of {key} is called lost by the owner that started it")

    def _closed(self, run: str, node: str, path: str, attempt: int, outcome: str) -> None:
        wait = f"{node}@{path}!{attempt}" if path else f"{node}!{attempt}"
        self.closed_s[run, wait] = self.now_s()
        if self.db.execute(_LEFT_ALONE, (run, wait)).fetchall():
            self.complain(f"run {run} does not wait for the child of {wait} any more, and did not tell it")
        found: Any = self.db.execute(_WAIT_DUE, (run, wait)).fetchone()
        if outcome in ("fired", "expired") and found is not None:
            early_ms = found[0] - self.wall_ms()
            self.late_s[run, wait] = (self.wall_ms() - max(found[0], self.opened_ms[run, node, path])) / 1000
            if early_ms > 0:
                self.complain(f"wait {wait} of run {run} {outcome} {early_ms} ms before its time")

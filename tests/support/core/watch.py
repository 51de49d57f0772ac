"""Reads the events of a run as they come and checks what must hold at every moment, whatever the workflow is.

A node starts in an open scope, once, in no run or branch that is being given up; no retry or wait ends before its time;
a lost attempt that may have done harm is looked at before it runs again; the limits of the run, its groups and its
containers hold; a container leaves when all its scopes have closed; nothing is decided twice; there is one end, nothing
comes after it, and at success nothing is undecided.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from compiler.keys import ROOT, NodeKey, Path, format_key
from compiler.plan import Plan
from executor.core import events as e


@dataclass
class Observed:
    """What a run came to. `position`: the order in which labels were decided; `counts`: scopes by end sentinel."""

    status: str = ""
    decided: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    position: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    cancelled: bool = False
    commits: int = 0
    journal: list[e.Event] = field(default_factory=list)


class Broken(AssertionError):
    """An invariant does not hold."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise Broken(message)


class Watch:
    """Reads events as they come and checks what must hold at every moment."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen = Observed()
        self.running: dict[NodeKey, int] = {}
        self.waits: dict[NodeKey, e.WaitOpened] = {}
        self.due: dict[NodeKey, int] = {}
        self.unclear: set[NodeKey] = set()  # lost, and to be looked at before it runs again
        self.attempts: Counter[NodeKey] = Counter()
        self.opened: Counter[tuple[Path, int]] = Counter()
        self.undecided: dict[Path, int] = {ROOT: len(plan.regions[0].nodes)}
        self.given_up: list[Path] = []
        self.dying = False

    def event(self, event: e.Event, at_ms: int) -> None:
        seen = self.seen
        require(not seen.status, f"an event after the end of the run: {event}")
        require(seen.journal or isinstance(event, e.RunStarted), "the first event is run.started")
        seen.journal.append(event)
        match event:
            case e.NodeStarted():
                self._started(event, at_ms)
            case e.NodeSucceeded():
                self._over(event.key)
                self._decided(event.key, "succeeded", event.route)
                self.dying |= event.end_run
            case e.RegionSized():
                self._over(event.key)
                self._decided(event.key, "succeeded", "out")
            case e.ScopesOpened():
                self._scopes(event)
            case e.RegionExited():
                self._over(event.key)
                self._decided(event.key, "succeeded", "out")
                seen.counts[format_key(self.plan, event.key)] = event.count
                self._all_closed(event.key)
            case e.NodeFailed():
                self._failed(event)
            case e.NodeSkipped():
                self._over(event.key)
                self._decided(event.key, "skipped", None if event.reason == "pruned" else "out")
            case e.RetryScheduled():
                self._over(event.key)
                self.due[event.key] = event.due_ms
            case e.RetryHastened():
                require(event.key in self.due, "only what waits for its time can be hastened")
                self.due[event.key] = event.due_ms
            case e.WaitOpened():
                self._over(event.key)
                require(not self.dying, "a wait opens in a run that is being given up")
                require(not self._lost_cause(event.key[0]), "a wait opens in a branch that is being given up")
                require(event.kind != "attention" or event.key in self.unclear, "there is nothing to look at")
                self.waits[event.key] = event
            case e.WaitClosed():
                wait = self.waits.pop(event.key)
                self.unclear.discard(event.key)
                if event.outcome in ("fired", "expired"):
                    require(wait.due_ms is not None and wait.due_ms <= at_ms, "a wait ends before its time")
            case e.RunParked():
                require(not self.running, "the run parks while something is under way")
            case e.RunCancelling():
                seen.cancelled = self.dying = True
            case e.RunFinished():
                self._finished(event)
            case _:
                pass

    def lost(self, key: NodeKey) -> None:
        """The process of this attempt is about to be reported gone."""
        if self.plan.nodes[key[1]].policy.on_lost == "ask":
            self.unclear.add(key)

    def left_behind(self) -> None:
        """The run was forked: what was under way stays with the other run."""
        require(not self.running, "an attempt of the other run is still under way in this one")
        require(all(w.kind != "child" for w in self.waits.values()), "this run waits for a child of the other one")
        require(not any(self._lost_cause(path) for path, _ in self.waits), "a branch that is given up still waits")

    def _started(self, event: e.NodeStarted, at_ms: int) -> None:
        key, name = event.key, format_key(self.plan, event.key)
        require(not self.dying, f"{name} starts in a run that is being given up")
        require(not self._lost_cause(key[0]), f"{name} starts in a branch that is being given up")
        require(key[0] in self.undecided, f"{name} starts in a scope that is not open")
        require(key not in self.running and key not in self.waits, f"{name} starts twice")
        require(key not in self.unclear, f"{name} starts again before a person has looked at it")
        require(name not in self.seen.decided, f"{name} starts after it was decided")
        if self.plan.nodes[key[1]].sentinel != "end":  # an end sentinel runs once per iteration
            self.attempts[key] += 1
            require(event.attempt == self.attempts[key], f"{name}: attempt {event.attempt} is out of order")
        require(self.due.pop(key, 0) <= at_ms, f"{name} is retried before its time")
        self.running[key] = event.attempt
        self._limits()

    def _limits(self) -> None:
        busy = [self.plan.nodes[number] for _, number in self.running if not self.plan.nodes[number].inline]
        require(len(busy) <= self.plan.settings.max_concurrency, "more runs than max_concurrency allows")
        for group, count in Counter(node.policy.group for node in busy if node.policy.group).items():
            require(count <= self.plan.groups[group].limit, f"more of group {group} runs than its limit")

    def _scopes(self, event: e.ScopesOpened) -> None:
        path, start = event.key
        body = self.plan.nodes[start].body
        region = self.plan.regions[body]
        if region.kind == "loop":
            self.running.pop((path, region.end), None)
        require(event.first == self.opened[path, body], "scopes open in order, each once")
        self.opened[path, body] += event.count
        for index in range(event.first, event.first + event.count):
            self.undecided[*path, (body, index)] = len(region.nodes)
        alive = [
            scope
            for scope, left in self.undecided.items()
            if left and scope and scope[:-1] == path and scope[-1][0] == body and not self._lost_cause(scope)
        ]
        require(len(alive) <= region.limit, f"{len(alive)} scopes of {region.id} are open, its limit is {region.limit}")

    def _all_closed(self, end: NodeKey) -> None:
        path, body = end[0], self.plan.nodes[end[1]].body
        for index in range(self.opened[path, body]):
            scope = (*path, (body, index))
            closed = not self.undecided[scope] or self._lost_cause(scope)
            require(closed, f"{format_key(self.plan, end)} leaves too early")

    def _failed(self, event: e.NodeFailed) -> None:
        self._over(event.key)
        self.waits.pop(event.key, None)
        doomed = self._lost_cause(event.key[0])
        self._decided(event.key, "failed", event.route)
        if event.route is not None or doomed:
            return
        if event.caught is None:
            self.dying = True
            return
        kind, scope = event.caught
        *outer, (region, _) = scope
        for other in self.undecided:
            beside = other[:-1] == tuple(outer) and other[-1:] and other[-1][0] == region
            if other == scope or (beside and kind == "container"):
                self.given_up.append(other)

    def _lost_cause(self, path: Path) -> bool:
        return any(path[: len(scope)] == scope for scope in self.given_up)

    def _over(self, key: NodeKey) -> None:
        self.running.pop(key, None)

    def _decided(self, key: NodeKey, state: str, route: str | None) -> None:
        name = format_key(self.plan, key)
        require(name not in self.seen.decided, f"{name} is decided twice")
        self.seen.decided[name] = (state, route)
        self.seen.position[name] = len(self.seen.decided)
        self.undecided[key[0]] -= 1

    def _finished(self, event: e.RunFinished) -> None:
        self.seen.status = event.status
        require(not self.waits, "a run that has ended leaves no wait open")
        if event.status == "succeeded" and not self.dying:
            for scope, left in self.undecided.items():
                require(not left or self._lost_cause(scope), f"success, but scope {scope} has {left} undecided nodes")
            require(not self.running, "success, but something is under way")
        if event.error is not None:
            require(event.error.code != "internal_undecided", event.error.message)

"""Reads the events of a run as they come and checks what must hold at every moment, whatever the workflow is.

A node starts in an open scope, once, in no run or branch that is being given up; no retry or wait ends before its time;
a lost attempt that may have done harm is looked at before it runs again; the limits of the run, its groups and its
containers hold; a container leaves when all its scopes have closed, its cleanup last; a cleanup begins when nothing is
under way in the body any more, and no container that has begun is left without its own; nothing is decided twice; there
is one end, nothing comes after it, and at success nothing is undecided."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from compiler.keys import ROOT, NodeKey, Path, format_key, format_path
from compiler.plan import Plan
from executor.kernel.core import events as e


@dataclass
class Observed:
    """What a run came to. `position`: the order in which labels were decided; `counts`: scopes by end sentinel.
    `astray`: the cleanups of a cancelled run in which a child run was cancelled with it, and since which position."""

    status: str = ""
    decided: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    position: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    cancelled: bool = False
    astray: dict[str, int] = field(default_factory=dict)
    cut: bool = False  # a cleanup was stopped, or left out
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
        self.waits: dict[tuple[NodeKey, int], e.WaitOpened] = {}
        self.due: dict[NodeKey, int] = {}
        self.left: set[NodeKey] = set()  # handlers that have left, and were not entered or lost since
        self.each: set[NodeKey] = set()  # those that have ever left
        self.news: set[NodeKey] = set()  # something has ended for them since they were entered
        self.unclear: set[NodeKey] = set()  # lost, and to be looked at before it runs again
        self.attempts: Counter[NodeKey] = Counter()
        self.opened: Counter[tuple[Path, int]] = Counter()
        self.undecided: dict[Path, int] = {ROOT: len(plan.regions[0].nodes)}
        self.given_up: list[Path] = []
        self.dying = False
        self.at_once = False  # without cleanups
        self.owed: dict[NodeKey, bool] = {}  # end sentinels of containers that have begun; whether their cleanup has
        if plan.regions[0].cleanup >= 0 and plan.undone is None:
            self.owed[ROOT, plan.regions[0].entries[0]] = False

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
                if event.key == self.plan.undone:  # it has ended all the same
                    self.owed.pop((ROOT, self.plan.regions[0].entries[0]), None)
            case e.RegionSized():
                body = self.plan.regions[self.plan.nodes[event.key[1]].body]
                lost = self._ends(event.key[0]) or self._lost_cause(event.key[0])
                if body.cleanup >= 0 and not lost and event.key in self.running:
                    self.owed[event.key[0], body.end] = False
                self._over(event.key)
                self._decided(event.key, "succeeded", "out")
            case e.CleanupOpened():
                self._cleanup(event)
            case e.CleanupStopped():
                seen.cut = True
                self.given_up.append(self._cleanup_scope(event.key))
            case e.ScopesOpened():
                self._scopes(event)
            case e.RegionExited():
                self._over(event.key)
                self._decided(event.key, "succeeded", "out")
                seen.counts[format_key(self.plan, event.key)] = event.count
                self._all_closed(event.key)
            case e.NodeFailed():
                self._failed(event)
            case e.NodeLeft():
                self._left(event)
            case e.StepFinished() | e.StepLost() if self.running.get(event.key) != event.attempt:
                self.news.add(event.key)
            case e.NodeSkipped():
                self._over(event.key)
                self._decided(event.key, "skipped", None if event.reason == "pruned" else "out")
            case e.RetryScheduled():
                self._over(event.key)
                self.due[event.key] = event.due_ms
                self.left.discard(event.key)
            case e.RetryHastened():
                require(event.key in self.due, "only what waits for its time can be hastened")
                self.due[event.key] = event.due_ms
            case e.WaitOpened():
                if event.each:
                    running = self.running.get(event.key)
                    require(running is not None, "a wait opens for a handler that does not run")
                    require((event.key, event.attempt) not in self.waits, "two waits have the same number")
                    if event.attempt != running:
                        self.attempts[event.key] += 1
                        require(event.attempt == self.attempts[event.key], "the number of a wait is out of order")
                    self.each.add(event.key)
                elif event.beside:
                    require((event.key, event.attempt - 1) in self.waits, "a wait opens beside no other")
                    self.attempts[event.key] += 1
                else:
                    self._over(event.key)
                    alone = event.key in self.each or not self.waiting(event.key)
                    require(alone, "a wait opens and others are still open")
                    self.left.discard(event.key)
                require(not self._ends(event.key[0]), "a wait opens in a run that is being given up")
                require(not self._lost_cause(event.key[0]), "a wait opens in a branch that is being given up")
                looks = event.kind != "attention" or event.step or event.key in self.unclear
                require(looks, "there is nothing to look at")
                self.waits[event.key, event.attempt] = event
            case e.WaitClosed():
                wait = self.waits.pop((event.key, event.attempt))
                require(event.left == len(self.waiting(event.key)), "a wait closes and tells wrong what is left")
                if wait.kind == "attention":
                    self.unclear.discard(event.key)
                if event.outcome in ("fired", "expired"):
                    require(wait.due_ms is not None and wait.due_ms <= at_ms, "a wait ends before its time")
            case e.RunParked():
                require(not self.running, "the run parks while something is under way")
            case e.RunCancelling():
                if self.plan.undone is not None and not self.dying and self._is_under_way(self.plan.undone):
                    self.owed[ROOT, self.plan.regions[0].entries[0]] = False  # it undoes that node
                seen.cancelled = self.dying = True
                self.at_once = event.now
                seen.cut |= event.now
            case e.RunFinished():
                self._finished(event)
            case _:
                pass

    def _is_under_way(self, key: NodeKey) -> bool:
        return self.attempts[key] > 0 and format_key(self.plan, key) not in self.seen.decided

    def lost(self, key: NodeKey) -> None:
        """The process of this attempt is about to be reported gone."""
        if self.plan.nodes[key[1]].policy.on_lost == "ask":
            self.unclear.add(key)

    def waiting(self, key: NodeKey) -> list[int]:
        """The numbers of its open waits."""
        return [number for other, number in self.waits if other == key]

    def left_behind(self) -> None:
        """The run was forked: what was under way stays with the other run."""
        require(not self.running, "an attempt of the other run is still under way in this one")
        require(all(w.kind != "child" for w in self.waits.values()), "this run waits for a child of the other one")
        require(not any(self._lost_cause(path) for (path, _), _ in self.waits), "a branch that is given up still waits")

    def _started(self, event: e.NodeStarted, at_ms: int) -> None:
        key, name = event.key, format_key(self.plan, event.key)
        require(not self._ends(key[0]), f"{name} starts in a run that is being given up")
        require(not self._lost_cause(key[0]), f"{name} starts in a branch that is being given up")
        require(key[0] in self.undecided, f"{name} starts in a scope that is not open")
        require(key not in self.running, f"{name} starts twice")
        require(key in self.each or not self.waiting(key), f"{name} starts and still waits")
        if key in self.left:
            self.left.remove(key)
            in_time = key in self.due and self.due[key] <= at_ms
            require(key in self.news or in_time, f"{name} is entered for nothing")
            self.due.pop(key, None)
        self.news.discard(key)
        require(key not in self.unclear, f"{name} starts again before a person has looked at it")
        require(name not in self.seen.decided, f"{name} starts after it was decided")
        if self.plan.nodes[key[1]].sentinel != "end":  # an end sentinel runs once per iteration
            self.attempts[key] += 1
            require(event.attempt == self.attempts[key], f"{name}: attempt {event.attempt} is out of order")
        require(self.due.pop(key, 0) <= at_ms, f"{name} is retried before its time")
        self.running[key] = event.attempt
        self._limits()

    def _left(self, event: e.NodeLeft) -> None:
        key = event.key
        require(self.running.get(key) == event.attempt, "a handler leaves that does not run")
        require(not event.again or key in self.news, "a handler leaves to be entered again, and nothing has ended")
        if not event.again:
            self.news.discard(key)  # it has received that
        require(self.waiting(key) or event.again or event.due_ms is not None, "a handler leaves for ever")
        self._over(key)
        self.each.add(key)
        self.left.add(key)
        if event.due_ms is not None:
            self.due[key] = event.due_ms

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

    def _ends(self, path: Path) -> bool:
        """The run does, and nothing starts in this scope any more: only cleanups do."""
        return self.dying and (self.at_once or not self.plan.in_cleanup(path))

    def _cleanup_scope(self, key: NodeKey) -> Path:
        node = self.plan.nodes[key[1]]
        region = self.plan.regions[0 if node.sentinel is None else node.body].cleanup
        return (*key[0], (region, 0))

    def _cleanup(self, event: e.CleanupOpened) -> None:
        key = event.key
        name = format_key(self.plan, key)
        self._over(key)
        require(not self.at_once, f"the cleanup of {name} begins in a run that ends at once")
        require(self.owed.get(key) is False, f"the cleanup of {name} begins twice, or has nothing to clean up for")
        self.owed[key] = True
        root = self.plan.nodes[key[1]].sentinel is None
        body = self.plan.nodes[key[1]].body
        for path, _ in [*self.running, *(key for key, _ in self.waits)]:
            inside = root or (
                path[: len(key[0])] == key[0]
                and path[len(key[0]) : len(key[0]) + 1][0:1]
                and path[len(key[0])][0] == body
            )
            require(not inside, f"the cleanup of {name} begins while something of the body is under way")
        for end, begun in self.owed.items():
            inside = end != key and (
                root
                or (len(end[0]) > len(key[0]) and end[0][: len(key[0])] == key[0] and end[0][len(key[0])][0] == body)
            )
            require(begun or not inside, f"the cleanup of {name} begins before one inside it")
        scope = self._cleanup_scope(key)
        self.undecided[scope] = len(self.plan.regions[scope[-1][0]].nodes)

    def _cleaned(self, key: NodeKey) -> None:
        scope = self._cleanup_scope(key)
        if key in self.owed:
            require(self.owed[key], f"{format_key(self.plan, key)}: its cleanup has not begun")
            over = not self.undecided[scope] or self._lost_cause(scope)
            require(over, f"{format_key(self.plan, key)}: its cleanup is not over")

    def _all_closed(self, end: NodeKey) -> None:
        self._cleaned(end)
        path, body = end[0], self.plan.nodes[end[1]].body
        for index in range(self.opened[path, body]):
            scope = (*path, (body, index))
            closed = not self.undecided[scope] or self._lost_cause(scope)
            require(closed, f"{format_key(self.plan, end)} leaves too early")

    def _failed(self, event: e.NodeFailed) -> None:
        self._over(event.key)
        for number in self.waiting(event.key):
            del self.waits[event.key, number]
        doomed = self._lost_cause(event.key[0])
        self._decided(event.key, "failed", event.route)
        if event.error.code == "child_cancelled" and self.seen.cancelled:
            self._goes_astray(event.key[0])
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

    def _goes_astray(self, path: Path) -> None:
        for depth, (region, _) in enumerate(path, 1):
            if self.plan.regions[region].kind == "cleanup":
                self.seen.astray.setdefault(format_path(self.plan, path[:depth]), len(self.seen.decided))
                break

    def _lost_cause(self, path: Path) -> bool:
        return any(
            path[: len(scope)] == scope and not self.plan.in_cleanup(path[len(scope) :]) for scope in self.given_up
        )

    def _over(self, key: NodeKey) -> None:
        self.running.pop(key, None)

    def _decided(self, key: NodeKey, state: str, route: str | None) -> None:
        name = format_key(self.plan, key)
        require(name not in self.seen.decided, f"{name} is decided twice")
        require(state == "failed" or not self.waiting(key), f"{name} is decided and still waits")
        self.seen.decided[name] = (state, route)
        self.seen.position[name] = len(self.seen.decided)
        self.undecided[key[0]] -= 1

    def _finished(self, event: e.RunFinished) -> None:
        self.seen.status = event.status
        require(not self.waits, "a run that has ended leaves no wait open")
        for key in self.owed if not self.at_once else ():
            self._cleaned(key)
        if event.status == "succeeded" and not self.dying:
            for scope, left in self.undecided.items():
                require(not left or self._lost_cause(scope), f"success, but scope {scope} has {left} undecided nodes")
            require(not self.running, "success, but something is under way")
        if event.error is not None:
            require(event.error.code != "internal_undecided", event.error.message)

"""Small plans and readable journals: plan, facts in, events out as lines of text, lists compared.

    s = Story({"ask": "yes:send no:log", "send": "", "log": ""})
    assert s.start() == ["run started", "ask starts"]
    assert s.done("ask", "yes") == ["ask -> yes", "log pruned by ask", "send starts"]

A block is described by its out-edges, `handle:target` or just `target` (handle `out`), separated by spaces. `block`,
`loop` and `parallel` say more. After every fact the journal is folded and compared with the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from msgspec import structs

from compiler.keys import format_key, format_path, parse_key
from executor.kernel.core import commands as c
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.commands import commands_of, outstanding
from executor.kernel.core.decide import decide
from executor.kernel.core.evolve import evolve, fold
from executor.kernel.core.explain import explain
from executor.kernel.core.state import State, Step
from tests.support.core.generator import Block, Rates, Workflow, plan_of
from tests.support.snapshots import encode

T0 = 1_000_000  # the time at which stories start, in ms
Shape = Mapping[str, "str | Block"]


def block(out: str = "", **more: Any) -> Block:
    return Block("", "plain", out=_edges(out), **more)


def loop(body: Shape, out: str = "", cleanup: Shape | None = None, **more: Any) -> Block:
    after = _blocks(cleanup or {})
    return Block("", "loop", out=_edges(out), inline=True, body=_blocks(body), cleanup=after, **more)


def parallel(body: Shape, out: str = "", limit: int = 100, cleanup: Shape | None = None, **more: Any) -> Block:
    after = _blocks(cleanup or {})
    return Block("", "parallel", out=_edges(out), inline=True, body=_blocks(body), limit=limit, cleanup=after, **more)


def with_cleanup(cleanup: Shape, out: str = "") -> Block:
    """A first block, which also has the cleanup of the run."""
    return Block("", "plain", out=_edges(out), cleanup=_blocks(cleanup))


def _edges(text: str) -> list[tuple[str, str]]:
    edges = [word.rpartition(":") for word in text.split()]
    return [(handle or "out", target) for handle, _, target in edges]


def _blocks(shape: Shape) -> list[Block]:
    """A body's first blocks are those that no sibling points to."""
    blocks = [replace(block(v) if isinstance(v, str) else v, id=name) for name, v in shape.items()]
    targets = {target for one in blocks for _, target in one.out}
    for one in blocks:
        one.entry = one.id not in targets
    return blocks


class Story:
    """One run. Every method feeds one fact and returns what was recorded, as text; `orders`: the commands of that."""

    def __init__(
        self,
        shape: Shape,
        groups: tuple[int, ...] = (),
        max_concurrency: int = 100,
        on_failure: Literal["drain", "cancel"] = "drain",
    ) -> None:
        rates = Rates(*[0.0] * 9)
        self.plan = plan_of(Workflow(0, rates, _blocks(shape), list(groups), max_concurrency, on_failure))
        self.state = State.new(self.plan)
        self.journal: list[e.Event] = []
        self.orders: list[c.Command] = []
        self.at_ms = T0

    def end_with(self, *names: str) -> None:
        """These are responses: inline, and the run ends with them."""
        root = self.plan.regions[0]
        nodes = tuple(structs.replace(n, inline=True, ends_run=True) if n.id in names else n for n in root.nodes)
        self.plan = structs.replace(self.plan, regions=(structs.replace(root, nodes=nodes), *self.plan.regions[1:]))
        self.state = State.new(self.plan)

    # --- facts ---

    def feed(self, fact: f.Fact) -> list[str]:
        events = decide(self.plan, self.state, fact)
        self.journal += events
        assert encode(fold(self.plan, self.journal)) == encode(self.state)
        self.orders = commands_of(self.plan, self.state, events)
        return [self.tell(event) for event in events]

    def start(self, stop_after: str | None = None, reuse: Mapping[str, str | None] | None = None) -> list[str]:
        kept = {self.number(name): route for name, route in (reuse or {}).items()}
        stop = None if stop_after is None else self.number(stop_after)
        return self.feed(f.StartRequested(self.at_ms, "r1", kept, stop))

    def done(self, name: str, route: str | None = "out", end_run: bool = False, as_new: bool = False) -> list[str]:
        return self.feed(f.NodeDone(self.at_ms, *self.attempt(name), route, end_run, as_new=as_new))

    def passed(self, name: str) -> list[str]:
        return self.feed(f.NodePassed(self.at_ms, *self.attempt(name)))

    def erred(
        self,
        name: str,
        retryable: bool = False,
        retry_at_ms: int | None = None,
        deferred: e.Deferred | None = None,
    ) -> list[str]:
        error = e.ErrorInfo("boom", "it broke", retryable)
        return self.feed(f.NodeErred(self.at_ms, *self.attempt(name), error, retry_at_ms, deferred))

    def lost(self, name: str, together: bool = False) -> list[str]:
        return self.feed(f.AttemptLost(self.at_ms, *self.attempt(name), together))

    def suspended(
        self,
        name: str,
        kind: e.WaitKind = "approval",
        due_ms: int | None = None,
        on_expire: str = "fail",
        step: f.WaitStep | None = None,
    ) -> list[str]:
        return self.feed(f.NodeSuspended(self.at_ms, *self.attempt(name), kind, due_ms, on_expire, step))

    def left(
        self,
        name: str,
        *opens: f.WaitBeside,
        drops: tuple[int, ...] = (),
        due_ms: int | None = None,
        received_seq: int = 0,
    ) -> list[str]:
        """The handler leaves, to be entered at the end of each wait."""
        return self.feed(f.HandlerLeft(self.at_ms, *self.attempt(name), opens, drops, due_ms, received_seq))

    def waits(self, name: str, *opens: f.WaitBeside, drops: tuple[int, ...] = ()) -> list[str]:
        """The handler, which runs, opens and closes waits."""
        return self.feed(f.HandlerWaits(self.at_ms, *self.attempt(name), opens, drops))

    def ended(self, name: str, n: int, failed: bool = False) -> list[str]:
        """The wait of step `n` ends."""
        key, _ = self.attempt(name)
        number = next(wait.attempt for wait in self.state.waits[key].values() if wait.step == n)
        error = e.ErrorInfo("boom", "it broke over there")
        fact = f.WaitFailed(self.at_ms, key, number, error) if failed else f.WaitAnswered(self.at_ms, key, number)
        return self.feed(fact)

    def forked(self) -> list[str]:
        return self.feed(f.ForkMade(self.at_ms, "source", len(self.journal)))

    def step(self, name: str, n: int, effect: e.StepEffect = "write", on_lost: e.StepOnLost = "") -> None:
        """The running attempt begins a step; what an attempt says of its steps is decided by no fact."""
        self._say(e.StepStarted(*self.attempt(name), n, "tool", f"step {n}", "hash", effect, on_lost=on_lost))

    def step_retrying(self, name: str, n: int, times: int, due_ms: int) -> None:
        self._say(e.StepRetrying(*self.attempt(name), n, times, due_ms, e.ErrorInfo("boom", "it broke", True)))

    def step_done(self, name: str, n: int, failed: bool = False) -> None:
        error = e.ErrorInfo("boom", "it broke", True) if failed else None
        self._say(e.StepFinished(*self.attempt(name), n, error=error))

    def steps(self, name: str) -> dict[int, str]:
        """What the state has of the steps of a node."""
        tries = self.state.tries.get(parse_key(self.plan, name))
        return {} if tries is None else {n: _word(step) for n, step in tries.by_n.items()}

    def _say(self, event: e.Event) -> None:
        evolve(self.plan, self.state, event)
        self.journal.append(event)
        assert encode(fold(self.plan, self.journal)) == encode(self.state)

    def answered(self, name: str, route: str | None = "out", by: str = "ann") -> list[str]:
        return self.feed(f.WaitAnswered(self.at_ms, *self.attempt(name), route, by))

    def wait_failed(self, name: str, retryable: bool = False) -> list[str]:
        error = e.ErrorInfo("boom", "it broke over there", retryable)
        return self.feed(f.WaitFailed(self.at_ms, *self.attempt(name), error))

    def wait_retried(self, name: str) -> list[str]:
        return self.feed(f.WaitRetried(self.at_ms, *self.attempt(name), "ann"))

    def retry_wanted(self, name: str) -> list[str]:
        return self.feed(f.RetryWanted(self.at_ms, *self.attempt(name)))

    def timer(self, name: str, at_ms: int, attempt: int | None = None) -> list[str]:
        """The clock moves to `at_ms`, then the timer of the node's wait or next attempt fires."""
        key, current = self.attempt(name)
        self.at_ms = at_ms
        return self.feed(f.TimerFired(at_ms, key, current if attempt is None else attempt))

    def sized(self, name: str, count: int) -> list[str]:
        return self.feed(f.RegionSizeKnown(self.at_ms, *self.attempt(name), count))

    def tested(self, name: str, again: bool) -> list[str]:
        return self.feed(f.LoopTested(self.at_ms, *self.attempt(name), again))

    def cancel(self, now: bool = False, asked: bool = True) -> list[str]:
        return self.feed(f.CancelRequested(self.at_ms, "enough", now, asked))

    def cleanup_late(self, name: str) -> list[str]:
        """The time of the cleanup with this end sentinel, or of this trigger, is over."""
        key = parse_key(self.plan, name)
        self.at_ms = self.state.cleanups[key]
        return self.feed(f.TimerFired(self.at_ms, key, 0))

    # --- looking ---

    def number(self, name: str) -> int:
        number = self.plan.node_index(name)
        assert number is not None, f"no node {name!r}"
        return number

    def attempt(self, name: str) -> tuple[tuple[Any, int], int]:
        """The key, and the number of the attempt that is under way, waits, or comes next."""
        key = parse_key(self.plan, name)
        if key in self.state.running:
            return key, self.state.running[key]
        if key in self.state.waits:
            return key, min(self.state.waits[key])
        return key, self.state.retries.get(key, (1, 0))[0]

    def why(self, name: str) -> tuple[str, tuple[str, ...]]:
        return explain(self.plan, self.state, parse_key(self.plan, name))

    def commands(self) -> list[str]:
        return [self._command(command) for command in self.orders]

    def outstanding(self) -> list[str]:
        return sorted(self._command(command) for command in outstanding(self.plan, self.state))

    def tell(self, event: e.Event) -> str:
        key = getattr(event, "key", None)
        name = "" if key is None else format_key(self.plan, key)
        match event:
            case e.RunStarted():
                return "run started"
            case e.NodeStarted():
                return f"{name} starts" + (f" again ({event.attempt})" if event.attempt > 1 else "")
            case e.NodeSucceeded():
                ends = " and ends the run" if event.end_run else ""
                return f"{name} -> {event.route or 'nowhere'}{' (reused)' if event.reused else ''}{ends}"
            case e.RegionSized():
                return f"{name} sized {event.count}"
            case e.ScopesOpened():
                container = self.plan.nodes[event.key[1]].block
                where = format_path(self.plan, event.key[0])
                numbers = ",".join(str(event.first + n) for n in range(event.count))
                return f"{container}{'@' if where else ''}{where} opens {numbers}"
            case e.RegionExited():
                return f"{name} leaves after {event.count}{' (reused)' if event.reused else ''}"
            case e.CleanupOpened():
                return f"cleanup of {name}"
            case e.RunRecovered():
                return "run recovered"
            case e.RunContinuing():
                return f"{name} continues as new"
            case e.CleanupStopped():
                return f"cleanup of {name} stopped"
            case e.NodeFailed():
                if event.route:
                    return f"{name} fails -> {event.route}"
                caught = (
                    f", caught by {event.caught[0]} {format_path(self.plan, event.caught[1])}" if event.caught else ""
                )
                return f"{name} fails{caught}"
            case e.NodeSkipped():
                because = f" by {format_key(self.plan, event.because)}" if event.because else ""
                return f"{name} {event.reason}{because}"
            case e.RetryScheduled():
                return f"{name} will retry"
            case e.RetryHastened():
                return f"{name} need not wait"
            case e.WaitOpened():
                return f"{name} waits"
            case e.WaitClosed():
                return f"{name} wait {event.outcome}"
            case e.StepStarted():
                return f"{name} step {event.n} begins"
            case e.StepFinished():
                return f"{name} step {event.n} {'fails' if event.error else 'ends'}"
            case e.StepLost():
                return f"{name} step {event.n} lost{', again' if event.again else ''}"
            case e.NodeLeft():
                return f"{name} leaves{', to be entered at once' if event.again else ''}"
            case e.RunParked():
                return "run parks" + ("" if event.due_ms is None else f" until +{event.due_ms - T0}")
            case e.RunCancelling():
                return "run cancelling"
            case e.RunFinished():
                return f"run {event.status}"
            case _:
                return type(event).__name__

    def _command(self, command: c.Command) -> str:
        match command:
            case c.RunNode():
                return f"run {format_key(self.plan, command.key)} ({command.attempt})"
            case c.CancelNode():
                return f"cancel {format_key(self.plan, command.key)}"
            case c.SetTimer():
                return f"timer {format_key(self.plan, command.key)} ({command.attempt}) +{command.due_ms - T0}"
            case c.Park():
                return "park"
            case c.Finish():
                return f"finish {command.status}"


def _word(step: Step) -> str:
    if step.lost:
        return "lost"
    if step.due_ms is not None:
        return f"failed {step.times} times"
    return "failed" if step.failed else "done" if step.finished_seq else "begun"

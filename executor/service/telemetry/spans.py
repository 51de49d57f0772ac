"""A trace: the spans of one run, from its journal. Run, nodes, attempts and steps have the times that were recorded, so
it is the same whichever process makes it, and however often its own processes were killed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import join_key
from executor.kernel.journal.projection import Entry, NodeState, Projection
from executor.kernel.process.observe import parent_of
from executor.kernel.process.tracing import attempt_span, node_span, run_span, step_span, trace_id

SPANS_MAX: Final = 10_000  # per run; more are counted and left out
_START, _END = ":start", ":end"

Kind = Literal["run", "node", "attempt", "step"]
Value = str | int | float | bool


class TracedRun(Struct, frozen=True):
    """The row of a run, as far as spans need it. `parent`: run and wait that it was started by."""

    id: str
    workflow: str
    version: int | None
    status: str
    created_at_ms: int
    finished_at_ms: int | None
    root: str | None = None
    parent: tuple[str, str] | None = None
    source: str | None = None


class Span(Struct, frozen=True):
    """`end_ms` is None if it has not ended. `events`: time, name, attributes."""

    id: str
    parent: str | None
    kind: Kind
    name: str
    start_ms: int
    end_ms: int | None
    status: str
    error: Mapping[str, Any] | None = None
    attributes: dict[str, Value] = {}
    events: tuple[tuple[int, str, dict[str, Value]], ...] = ()


class Trace(Struct, frozen=True):
    """`spans`: parents before their children. `link`: trace and span of the run that this one was made from."""

    id: str
    spans: list[Span]
    left_out: int = 0
    link: tuple[str, str] | None = None


class Sent(Struct, frozen=True):
    """The exported part of the trace of an open run: the last end of a span, and the spans that ended then."""

    at_ms: int = 0
    ids: frozenset[str] = frozenset()

    def rest_of(self, trace: Trace) -> Trace:
        """Return the trace without the exported spans. The times in a journal only grow, so all that ended before
        `at_ms` were."""
        spans = [each for each in trace.spans if each.end_ms is None or each.end_ms >= self.at_ms]
        return replace(trace, spans=[each for each in spans if each.end_ms is None or each.id not in self.ids])

    def then(self, part: Trace) -> Sent:
        ends = {each.id: each.end_ms for each in part.spans if each.end_ms is not None}
        at_ms = max(ends.values(), default=self.at_ms)
        ids = frozenset(id for id, end_ms in ends.items() if end_ms == at_ms)
        return Sent(at_ms, ids | self.ids if at_ms == self.at_ms else ids)


class TraceMaker:
    """`add` every entry of the journal, then `trace`. `types`: block types by node id, as far as they are known."""

    def __init__(self, run: TracedRun, types: Mapping[str, str] | None = None) -> None:
        self._run = run
        self._types = types or {}
        self._projection = Projection()
        self._waits: dict[tuple[str, str], list[tuple[int, str, dict[str, Value]]]] = {}
        self._first: Mapping[str, Any] = {}
        self._error: Mapping[str, Any] | None = None

    def add(self, entry: Entry) -> None:
        self._projection.apply(entry)
        if entry.type == "run.started":
            self._first = entry.data
        elif entry.type == "run.finished":
            self._error = entry.data.get("error")
        elif entry.node is not None and entry.type in ("wait.opened", "wait.closed"):
            about: dict[str, Value] = {
                f"weft.wait.{name}": entry.data[name] for name in ("kind", "outcome") if name in entry.data
            }
            self._waits.setdefault((entry.node, entry.path), []).append((entry.at_ms, entry.type, about))

    def trace(self) -> Trace:
        run = self._run
        parent = parent_of(self._first.get("traceparent"))
        trace = parent.trace if parent is not None else trace_id(run.root or run.id)
        above = parent.span if parent is not None else None
        if above is None and run.parent is not None:
            above = _span_of_wait(*run.parent)
        spans = [self._of_run(above)]
        left_out = 0
        for span in self._of_nodes():
            if len(spans) < SPANS_MAX:
                spans.append(span)
            else:
                left_out += 1
        source = self._first.get("source_run") or run.source
        link = None if source is None else (trace_id(source), run_span(source))
        return Trace(trace, spans, left_out, link)

    def _of_run(self, above: str | None) -> Span:
        run = self._run
        attributes: dict[str, Value] = {"weft.run": run.id, "weft.workflow": run.workflow, "weft.status": run.status}
        if run.version is not None:
            attributes["weft.version"] = run.version
        return Span(
            run_span(run.id),
            above,
            "run",
            f"run {run.workflow}",
            run.created_at_ms,
            run.finished_at_ms,
            run.status,
            self._error,
            attributes,
        )

    def _of_nodes(self) -> Iterable[Span]:
        containers: dict[tuple[str, str], list[NodeState]] = {}
        for state in self._projection.nodes.values():
            if state.node.endswith((_START, _END)):
                block = state.node.removesuffix(_START).removesuffix(_END)
                containers.setdefault((block, state.path), []).append(state)
            elif state.started_at_ms is not None:
                yield from self._of_node(state)
        for (block, path), ends in containers.items():
            yield from self._of_container(block, path, ends)

    def _of_node(self, state: NodeState) -> Iterable[Span]:
        run, key = self._run.id, join_key(state.node, state.path)
        assert state.started_at_ms is not None
        id = node_span(run, key)
        attributes = self._about(key, state.node)
        if state.cached or state.reused:
            attributes["weft.cached"] = True
        if state.child is not None:
            attributes["weft.child_run"] = state.child
        waits = tuple(self._waits.get((state.node, state.path), ()))
        end_ms = state.finished_at_ms
        above = self._above(state.path)
        yield Span(id, above, "node", state.node, state.started_at_ms, end_ms, state.status, None, attributes, waits)
        for attempt in state.attempts.values():
            if attempt.started_at_ms is None:
                continue
            number = attempt.attempt
            about: dict[str, Value] = {**self._about(key, state.node), "weft.attempt": number}
            span = attempt_span(run, key, number)
            name = state.node if number == 1 else f"{state.node} (attempt {number})"
            ended_ms = attempt.finished_at_ms or (end_ms if attempt.status != "running" else None)
            yield Span(span, id, "attempt", name, attempt.started_at_ms, ended_ms, attempt.status, attempt.error, about)
        for step in state.steps.in_order() if state.steps is not None else ():
            details: dict[str, Value] = {
                "weft.step": step.n,
                "weft.step.kind": step.kind,
                "weft.step.effect": step.effect,
            }
            if step.times > 1:
                details["weft.step.times"] = step.times
            for name, count in step.usage.items():
                details[f"gen_ai.usage.{name}"] = count
            if step.kind == "model":
                details["gen_ai.request.model"] = step.name
            if step.cost is not None:
                details["weft.cost_usd"] = step.cost
            yield Span(
                step_span(run, key, step.attempt, step.n),
                attempt_span(run, key, step.attempt),
                "step",
                step.name or step.kind,
                step.started_at_ms,
                step.finished_at_ms,
                step.status,
                step.error,
                details,
            )

    def _of_container(self, block: str, path: str, ends: list[NodeState]) -> Iterable[Span]:
        started = [state.started_at_ms for state in ends if state.started_at_ms is not None]
        if not started:
            return
        last = ends[-1]
        is_over = last.node.endswith(_END) or last.status in ("failed", "cancelled", "skipped")
        key = join_key(block, path)
        about = self._about(key, block)
        scopes = next((state.scopes for state in ends if state.scopes is not None), None)
        if scopes is not None:
            about["weft.scopes"] = scopes
        end_ms = last.finished_at_ms if is_over else None
        error = next((state.error for state in ends if state.error is not None), None)
        id = node_span(self._run.id, key)
        yield Span(id, self._above(path), "node", block, min(started), end_ms, last.status, error, about)

    def _about(self, key: str, node: str) -> dict[str, Value]:
        found: dict[str, Value] = {"weft.run": self._run.id, "weft.node": key}
        type = self._types.get(node)
        if type is not None:
            found["weft.block_type"] = type
        return found

    def _above(self, path: str) -> str:
        if not path:
            return run_span(self._run.id)
        outer, _, last = path.rpartition("/")
        return node_span(self._run.id, join_key(last.split("#")[0].split("[")[0], outer))


def _span_of_wait(run: str, wait: str) -> str:
    """Return the attempt of the parent that waits for the run: `key!attempt`."""
    key, _, number = wait.rpartition("!")
    return attempt_span(run, key, int(number)) if number.isdigit() else run_span(run)

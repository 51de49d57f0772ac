"""The reference model: what a run of a described workflow must come to. Brute force, by structural recursion.

It shares no code with the core: no events, no counters, no order. A whole scope is evaluated at once, block by block.
Where the order of completion legitimately matters (a failure stops what is beside it, a response ends the run) it says
what is decided in any case (`sure`) and what may be decided, and how (`decided`).
Rules: docs/reference/execution.md, "Edges and readiness", "Loops", "Parallels", "Errors".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.core.generator import Block, Place, Table, Workflow, action_route

Labels = frozenset[str]


@dataclass
class Verdict:
    """Of a part of a run, or of all of it. Labels are node keys as text.

    decided   how each label ends if it is decided: (succeeded | failed | skipped, live route)
    past      what is decided in any case when this label is
    sure      labels that are decided in any case if the run gets to the end of this part
    stops     what keeps this part from its end, with its past: "fail" (not caught here), "end" (a response), "maybe" (a
              response that a failure caught beside it may forestall)
    counts    scopes that a container, named by its end sentinel, opens
    """

    decided: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    past: dict[str, Labels] = field(default_factory=dict)
    sure: set[str] = field(default_factory=set)
    stops: list[tuple[str, Labels]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    statuses: set[str] = field(default_factory=lambda: {"succeeded"})

    def note(self, label: str, state: str, route: str | None, past: Labels) -> None:
        self.decided[label] = (state, route)
        self.past[label] = past
        self.sure.add(label)

    def add(self, part: Verdict) -> None:
        self.decided |= part.decided
        self.past |= part.past
        self.sure |= part.sure
        self.stops += part.stops
        self.counts |= part.counts

    def has(self, *kinds: str) -> bool:
        return any(kind in kinds for kind, _ in self.stops)

    def catch(self) -> None:
        """A failure in here is caught at the border: only what came before every failure is sure."""
        self.sure = self.sure.intersection(*(past for kind, past in self.stops if kind == "fail"))
        self.stops = [("maybe", past) for kind, past in self.stops if kind != "fail"]


def judge(workflow: Workflow, table: Table) -> Verdict:
    """The verdict on a whole run. `statuses`: how it may end."""
    reference = _Reference(table)
    run = reference.scope(workflow.blocks, (), frozenset())
    if run.has("fail", "end"):
        run.statuses = {"failed" if kind == "fail" else "succeeded" for kind, _ in run.stops if kind in ("fail", "end")}
    for _, past in run.stops:
        run.sure &= past
    if workflow.blocks[0].cleanup:
        after = reference.scope(workflow.blocks[0].cleanup, ((":finally", 0),), frozenset())
        if after.has("fail"):
            run.statuses = {"failed"}
            after.catch()
        run.add(after)
    return run


def label_of(node_id: str, place: Place, loops: frozenset[str]) -> str:
    scope = "/".join(
        name if name.endswith(":finally") else f"{name}#{n}" if name in loops else f"{name}[{n}]" for name, n in place
    )
    return f"{node_id}@{scope}" if scope else node_id


class _Reference:
    def __init__(self, table: Table) -> None:
        self.table = table
        self.loops = frozenset(b.id for b in table.workflow.by_id.values() if b.kind == "loop")

    def scope(self, blocks: list[Block], place: Place, before: Labels) -> Verdict:
        """One scope, from its opening to the decision of its last block. A block behind a stop is never decided."""
        here = Verdict()
        fired: dict[str, str | None] = {}  # the route each decided block took
        after: dict[str, Labels] = {}  # what is decided in any case once this block is
        for block in blocks:
            edges = [(b.id, handle) for b in blocks for handle, target in b.out if target == block.id]
            if any(source not in fired for source, _ in edges):
                continue
            past = before.union(*(after[source] for source, _ in edges))
            live = block.entry or not edges or any(fired[source] == handle for source, handle in edges)
            part = Verdict()
            route = (self.container if block.body else self.single)(part, block, place, past, live)
            here.add(part)
            if not part.has("fail", "end"):
                fired[block.id], after[block.id] = route, past | part.sure
        return here

    def cleaned(self, part: Verdict, block: Block, place: Place, begun: Labels, end: str) -> str | None:
        """The end of a container with a cleanup. It comes for sure once the container has begun, whatever ends the
        body: so nothing of the body is sure to be decided before it. It stops every failure, and the end fails after
        it."""
        failed = part.has("fail") or self.table.of(block, place).test_fails_after > 0
        if part.has("fail"):
            part.catch()
        after = self.scope(block.cleanup, (*place, (f"{block.id}:finally", 0)), begun)
        failed_after = after.has("fail")
        if failed_after:
            after.catch()
        part.add(after)
        if part.has("end"):
            if failed:  # whichever comes first
                return self.fail(part, block, end, begun | part.sure)
            return None
        if failed or failed_after:
            return self.fail(part, block, end, begun | part.sure)
        part.note(end, "succeeded", "out", begun | part.sure)
        return "out"

    def single(self, part: Verdict, block: Block, place: Place, past: Labels, live: bool) -> str | None:
        act = self.table.of(block, place)
        label = label_of(block.id, place, self.loops)
        if not live:
            part.note(label, "skipped", None, past)
            return None
        out_of_attempts = act.fails and (not act.retryable or act.fails >= block.max_attempts)
        expires = act.on_expire if act.wait == "expired" and not act.skip else None
        if out_of_attempts or expires == "fail":
            return self.fail(part, block, label, past)
        if block.kind == "response" and not act.skip:
            part.stops.append(("end", past | {label}))
        skipped = act.skip or expires == "skip"
        route = "out" if skipped else action_route(block, expires) if expires else act.route
        part.note(label, "skipped" if skipped else "succeeded", route, past)
        return route

    def fail(self, part: Verdict, block: Block, label: str, past: Labels) -> str | None:
        route = "error" if "error" in block.wired else "out" if block.on_error == "continue" else None
        part.note(label, "failed", route, past)
        if route is None:
            part.stops.append(("fail", past | {label}))
        return route

    def container(self, part: Verdict, block: Block, place: Place, past: Labels, live: bool) -> str | None:
        act = self.table.of(block, place)
        start, end = (label_of(f"{block.id}:{which}", place, self.loops) for which in ("start", "end"))
        begun = past | {start}
        if not live:
            part.note(start, "skipped", None, past)
            part.note(end, "skipped", None, begun)
            return None
        if act.fails:
            route = self.fail(part, block, start, past)
            if route is not None:
                part.note(end, "failed" if route == "out" else "skipped", route if route == "out" else None, begun)
            return route
        part.note(start, "succeeded", "out", past)
        for index in range(act.count):
            done = begun | part.sure if block.kind == "loop" else begun
            turn = self.scope(block.body, (*place, (block.id, index)), done)
            if turn.has("fail") and block.on_branch_error != "fail":
                turn.catch()
            part.add(turn)
            if block.kind == "loop" and (part.has("fail", "end") or act.test_fails_after == index + 1):
                break
        part.counts[end] = act.count
        if block.cleanup:
            return self.cleaned(part, block, place, begun, end)
        if part.has("fail") and ("error" in block.wired or block.on_error == "continue"):
            part.catch()
        elif part.has("fail", "end"):
            return None
        elif not act.test_fails_after:
            part.note(end, "succeeded", "out", begun | part.sure)
            return "out"
        return self.fail(part, block, end, begun | part.sure)

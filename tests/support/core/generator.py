"""Random workflows: from a seed, a description, the behaviour of its blocks, and the plan that the core runs.

A *description* is a tree of `Block`s in an order in which every edge points forward. What a block does is not part of
it: `Table` derives that from (seed, block, scope) alone, so it is the same in every order of completion and after every
crash.
The plan is built here by hand, not by the compiler, so that a mistake there cannot hide one in the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Literal

from compiler.plan import (
    Edge,
    Effect,
    Group,
    Node,
    OnBranchError,
    OnError,
    OnLost,
    Plan,
    Policy,
    Region,
    Retry,
    Settings,
)

Kind = Literal["trigger", "plain", "choice", "wait", "response", "loop", "parallel"]
Pause = Literal["timer", "answered", "expired", "child"]
Place = tuple[tuple[str, int], ...]  # containers from the root inwards, each with its iteration or branch

ALWAYS = 99  # more failing attempts than any policy allows
DEPTH_MAX = 4
BLOCKS_MAX = (11, 4, 3, 2, 2)  # by depth: deep bodies run many times, so they are small
COUNT_MAX = (4, 3, 2, 2)  # scopes of a container, by its depth
CASES = ("a", "b", "c")
ACTIONS = ("approve", "reject")
HANDLES: dict[Kind, tuple[str, ...]] = {
    "trigger": ("out",),
    "plain": ("out",),
    "choice": CASES,
    "wait": ("out", *ACTIONS),
    "response": (),
    "loop": ("out",),
    "parallel": ("out",),
}


@dataclass
class Block:
    """`out`: (handle, id of a later sibling). The lower half is for containers only, but the trigger has the cleanup of
    the run."""

    id: str
    kind: Kind
    entry: bool = False
    out: list[tuple[str, str]] = field(default_factory=list)
    on_error: OnError = "fail"
    max_attempts: int = 1
    group: int = 0
    inline: bool = False
    effect: Effect = "none"
    on_lost: OnLost = "retry"
    body: list[Block] = field(default_factory=list)
    limit: int = 1
    on_branch_error: OnBranchError = "fail"
    cleanup: list[Block] = field(default_factory=list)

    @property
    def wired(self) -> set[str]:
        return {handle for handle, _ in self.out}


@dataclass(frozen=True)
class Rates:
    """How often a block does what. Each seed switches some of these off, so that rare meetings happen somewhere."""

    fail: float
    retry: float
    skip: float
    wait: float
    response: float
    container: float
    error_edge: float
    catch: float
    ask: float


@dataclass
class Workflow:
    seed: int
    rates: Rates
    blocks: list[Block]
    groups: list[int]
    max_concurrency: int
    on_failure: Literal["drain", "cancel"]

    @cached_property
    def by_id(self) -> dict[str, Block]:
        return {block.id: block for block in every(self.blocks)}


def every(blocks: list[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from every(block.body)
        yield from every(block.cleanup)


# --- what a block does ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Behaviour:
    """One execution of a block. `fails`: attempts that raise before one succeeds. `count`: iterations or branches.
    `wait`: how the pause ends; a child run fails as often as `fails` says. `test_fails_after`: the loop's test raises
    after so many iterations (0: never)."""

    fails: int = 0
    retryable: bool = False
    skip: bool = False
    route: str | None = "out"
    wait: Pause | None = None
    on_expire: str = "fail"
    count: int = 0
    lazy: bool = False
    test_fails_after: int = 0


class Table:
    """The behaviour of every block in every scope; depends on the seed and on nothing else."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self._known: dict[tuple[str, Place], Behaviour] = {}

    def of(self, block: Block, place: Place) -> Behaviour:
        found = self._known.get((block.id, place))
        if found is None:
            found = self._known[block.id, place] = self._draw(block, place)
        return found

    def _draw(self, block: Block, place: Place) -> Behaviour:
        rng = Random(f"{self.workflow.seed}|{block.id}|{place}")
        rates = self.workflow.rates
        fails, retryable = 0, False
        if rng.random() < rates.fail:
            # one error that is final must be enough
            fails, retryable = (ALWAYS, True) if rng.random() < 0.5 else (1, False)
        elif block.max_attempts > 1 and rng.random() < rates.retry:
            fails, retryable = rng.randrange(1, block.max_attempts), True
        if block.kind in ("loop", "parallel"):
            count = rng.randint(0, COUNT_MAX[min(len(place), len(COUNT_MAX) - 1)])
            in_test = fails > 0 and block.kind == "loop" and count > 0 and rng.random() < 0.5
            return Behaviour(
                fails=0 if in_test else fails,
                count=count,
                lazy=rng.random() < 0.5,
                test_fails_after=rng.randint(1, count) if in_test else 0,
            )
        route: str | None = "out"
        wait: Pause | None = None
        if block.kind == "choice":
            route = rng.choice([*CASES, *CASES, None])
        elif block.kind == "wait":
            wait = rng.choice(("timer", "answered", "answered", "expired", "child"))
            if wait == "answered":
                route = action_route(block, rng.choice(("out", *ACTIONS)))
        on_expire = rng.choice(("skip", "continue", *ACTIONS, *(("fail",) if rates.fail else ())))
        return Behaviour(fails, retryable, rng.random() < rates.skip, route, wait, on_expire)


def action_route(block: Block, action: str) -> str:
    return action if action in block.wired else "out"


# --- the description ------------------------------------------------------------------------------------------------


def generate(seed: int) -> Workflow:
    """The workflow of `seed`. Same seed, same workflow, on every machine and under every PYTHONHASHSEED."""
    rng = Random(f"workflow {seed}")
    rates = Rates(
        fail=rng.choice((0.0, 0.0, 0.03, 0.1)),
        retry=rng.choice((0.0, 0.3, 0.6)),
        skip=rng.choice((0.0, 0.1)),
        wait=rng.choice((0.0, 0.1, 0.3)),
        response=rng.choice((0.0, 0.0, 0.0, 0.04)),
        container=rng.choice((0.0, 0.2, 0.3, 0.5)),
        error_edge=rng.choice((0.0, 0.2, 0.4)),
        catch=rng.choice((0.0, 0.3, 0.6)),
        ask=rng.choice((0.0, 0.3, 0.8)),
    )
    groups = [rng.randint(1, 2) for _ in range(rng.randint(0, 2))]
    blocks = _Grower(rng, rates, len(groups)).region(0, "")
    workflow = Workflow(
        seed=seed,
        rates=rates,
        blocks=blocks,
        groups=groups,
        max_concurrency=rng.choice((1, 2, 3, 100, 100)),
        on_failure=rng.choice(("drain", "drain", "cancel")),
    )
    _add_cleanups(workflow)
    return workflow


def _add_cleanups(workflow: Workflow) -> None:
    """By chances of its own, so that a seed without cleanups is the workflow that it was before there were any. What
    ends the run has no place in them."""
    rng = Random(f"cleanups {workflow.seed}")
    chance = rng.choice((0.0, 0.0, 0.3, 0.7))
    rates = replace(workflow.rates, response=0.0, container=min(workflow.rates.container, 0.2))
    grower = _Grower(rng, rates, len(workflow.groups))
    for block in list(every(workflow.blocks)):
        if block.kind in ("trigger", "loop", "parallel") and rng.random() < chance:
            depth = min(DEPTH_MAX, block.id.count(".") + 1)
            block.cleanup = grower.region(max(depth, 2), f"{block.id}.f")
            for inner in list(every(block.cleanup)):
                if inner.body and rng.random() < chance / 2:
                    inner.cleanup = grower.region(DEPTH_MAX, f"{inner.id}.f")


class _Grower:
    def __init__(self, rng: Random, rates: Rates, groups: int) -> None:
        self.rng, self.rates, self.groups = rng, rates, groups

    def region(self, depth: int, prefix: str) -> list[Block]:
        rng = self.rng
        size = rng.randint(1, BLOCKS_MAX[depth])
        blocks = [self.block(depth, f"{prefix}{chr(97 + n)}", first=n == 0) for n in range(size)]
        for number, block in enumerate(blocks):
            sources = [earlier for earlier in blocks[:number] if earlier.kind != "response"]
            # the root has one trigger; a body may start with several blocks
            if number == 0 or (depth and (not sources or rng.random() < 0.2)):
                block.entry = True
            if number and (not block.entry or (sources and rng.random() < 0.2)):
                self.connect(sources, block)
        return blocks

    def connect(self, sources: list[Block], target: Block) -> None:
        for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3))):
            # mostly near neighbours, so that there are chains as well as fans
            source = self.rng.choice(sources[-3:] if self.rng.random() < 0.7 else sources)
            handle = self.rng.choice(HANDLES[source.kind])
            if source.kind != "trigger" and self.rng.random() < self.rates.error_edge:
                handle = "error"
            source.out.append((handle, target.id))

    def block(self, depth: int, name: str, first: bool) -> Block:
        rng, rates = self.rng, self.rates
        if first and not depth:
            return Block(name, "trigger", inline=True)
        block = Block(name, self.kind(depth, first))
        if rng.random() < rates.catch / 3:
            block.on_error = "continue"
        if block.kind in ("loop", "parallel"):
            block.inline = True
            block.limit = rng.randint(1, 3) if block.kind == "parallel" else 1
            if block.kind == "parallel" and rng.random() < rates.catch:
                block.on_branch_error = rng.choice(("continue", "collect"))
            block.body = self.region(depth + 1, f"{name}.")
            return block
        block.max_attempts = rng.randint(1, 3)
        block.inline = block.kind == "choice" or (block.kind == "plain" and rng.random() < 0.15)
        block.effect = rng.choice(("none", "read", "write"))
        # "fail" has no place here: whether it fails would hang on a crash, which the reference does not know
        block.on_lost = "ask" if rng.random() < rates.ask else "retry"
        if self.groups and not block.inline and rng.random() < 0.5:
            block.group = rng.randint(1, self.groups)
        return block

    def kind(self, depth: int, first: bool) -> Kind:
        rng, rates = self.rng, self.rates
        if depth < DEPTH_MAX and rng.random() < rates.container:
            return rng.choice(("loop", "parallel"))
        if rng.random() < rates.wait:
            return "wait"
        if not first and rng.random() < rates.response:
            return "response"
        return rng.choice(("plain", "plain", "plain", "choice"))


# --- the plan -------------------------------------------------------------------------------------------------------


def plan_of(workflow: Workflow) -> Plan:
    """The plan of a description, as the compiler would lay it out (see compiler/plan.py)."""
    bodies: list[tuple[Block | None, int, list[Block], bool]] = [(None, -1, workflow.blocks, False)]
    for index, (_, _, blocks, _) in enumerate(bodies):  # grows while it is read: regions breadth first
        for block in blocks:
            bodies += [(block, index, block.body, False)] if block.body else []
            bodies += [(block, index, block.cleanup, True)] if block.cleanup else []
    body_of = {owner.id: index for index, (owner, _, _, after) in enumerate(bodies) if owner and not after}
    cleanup_of = {owner.id: index for index, (owner, _, _, after) in enumerate(bodies) if owner and after}
    number: dict[str, int] = {}
    firsts: list[int] = []
    for _, _, blocks, _ in bodies:
        firsts.append(len(number))
        for node_id in (node_id for block in blocks for node_id in _node_ids(block)):
            number[node_id] = len(number)
    regions: list[Region] = []
    for index, (owner, parent, blocks, after) in enumerate(bodies):
        nodes = [node for block in blocks for node in _nodes(workflow, block, number, body_of)]
        first = firsts[index]
        indegree = [0] * len(nodes)
        for edge in (edge for node in nodes for edge in node.out):
            indegree[edge.target - first] += 1
        entries = [number[_node_ids(block)[0]] for block in blocks if block.entry]
        if owner:
            for entry in entries:
                indegree[entry - first] += 1
        regions.append(
            Region(
                id=_region_id(owner, after),
                kind="root"
                if owner is None
                else "cleanup"
                if after
                else "loop"
                if owner.kind == "loop"
                else "parallel",
                parent=parent,
                first=first,
                nodes=tuple(nodes),
                indegree=tuple(indegree),
                entries=tuple(entries),
                ends=tuple(number[_node_ids(block)[-1]] for block in blocks if not block.out),
                limit=1 if after else owner.limit if owner else 0,
                on_branch_error=owner.on_branch_error if owner and not after else "fail",
                start=number[_node_ids(owner)[0]] if owner else -1,
                end=number[_node_ids(owner)[-1]] if owner else -1,
                cleanup=-1 if after else cleanup_of.get(owner.id if owner else _trigger_of(workflow), -1),
            )
        )
    return Plan(
        name=f"seed-{workflow.seed}",
        trigger=workflow.blocks[0].id,
        regions=tuple(regions),
        groups=(Group("", 0), *(Group(f"g{n}", limit) for n, limit in enumerate(workflow.groups, 1))),
        settings=Settings(max_concurrency=workflow.max_concurrency, on_failure=workflow.on_failure),
    )


def _trigger_of(workflow: Workflow) -> str:
    """Its cleanup is that of the run. A container has one for itself, also where a test begins with it."""
    first = workflow.blocks[0]
    return "" if first.body else first.id


def _region_id(owner: Block | None, after: bool) -> str:
    if owner is None:
        return ""
    return f"{owner.id if owner.body else ''}:finally" if after else owner.id


def _node_ids(block: Block) -> tuple[str, ...]:
    return (f"{block.id}:start", f"{block.id}:end") if block.body else (block.id,)


def _nodes(workflow: Workflow, block: Block, number: dict[str, int], body_of: dict[str, int]) -> list[Node]:
    edges = [Edge(number[_node_ids(workflow.by_id[target])[0]], handle) for handle, target in block.out]
    policy = Policy(
        retry=Retry(max_attempts=block.max_attempts, initial_ms=500),
        on_error=block.on_error,
        group=block.group,
        on_lost=block.on_lost,
    )
    if not block.body:
        return [
            Node(
                id=block.id,
                block=block.id,
                type=block.kind,
                name=block.id,
                out=tuple(edges),
                policy=policy,
                inline=block.inline,
                effect=block.effect,
            )
        ]
    errors = [edge for edge in edges if edge.handle == "error"]
    body, end = body_of[block.id], number[f"{block.id}:end"]

    def sentinel(which: Literal["start", "end"], out: list[Edge]) -> Node:
        return Node(
            id=f"{block.id}:{which}",
            block=block.id,
            type=f"{block.kind}:{which}",
            name=block.id,
            out=tuple(out),
            policy=policy,
            sentinel=which,
            body=body,
            inline=True,
            effect="none",
        )

    return [sentinel("start", [Edge(end), *errors]), sentinel("end", edges)]

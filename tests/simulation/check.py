"""One seed: a workflow, the reference's verdict on it, and runs of it in several orders that must agree with that."""

from __future__ import annotations

import re
from random import Random

from compiler.plan import Plan
from executor.kernel.core.events import NodeFailed, RunCancelling, RunFinished
from executor.kernel.core.evolve import fold
from executor.kernel.core.fork import fork_point
from executor.kernel.core.state import RunPhase
from tests.simulation.document import compiled_plan
from tests.simulation.reference import Verdict, judge
from tests.support.core.drive import Drive, Faults
from tests.support.core.generator import Table, Workflow, generate, plan_of
from tests.support.core.undo import Undone, durable
from tests.support.core.watch import Broken, Observed, require

PRUNED = ("skipped", None)
ORDERS = 4  # order 0 is first in, first out, without faults


def simulate(seed: int, orders: int = ORDERS) -> list[Observed]:
    """Run one seed. Raises AssertionError that names the order and the command to run it again."""
    workflow = generate(seed)
    by_hand, table = plan_of(workflow), Table(workflow)
    verdict = judge(workflow, table)
    seen: list[Observed] = []
    for order in range(orders):
        rng = Random(f"{seed} faults {order}")
        faults = Faults.draw(rng) if order else Faults()
        try:
            # the last order runs what the compiler makes of the document, the others the plan made by hand
            plan = by_hand if order < orders - 1 else compiled_plan(workflow, rng)
            observed = Drive(workflow, plan, table, order, faults).run()
            agree(verdict, observed)
            if not (verdict.stops or observed.cancelled or observed.cut) and order:
                run_again(workflow, plan, table, verdict, observed, rng)
            if order % 2:  # one by hand, one compiled
                fork(workflow, plan, table, verdict, observed, rng)
        except Exception as error:
            again = f"python -m tests.simulation --seed {seed}"
            raise AssertionError(f"seed {seed}, order {order}: {error}\nrun it again: {again}") from error
        seen.append(observed)
    return seen + undo(seed, orders - 1)


def undo(seed: int, orders: int) -> list[Observed]:
    """Run a durable function of this seed, which is cancelled. Raises AssertionError as `simulate` does."""
    workflow, plan = durable(seed)
    seen: list[Observed] = []
    for order in range(orders):
        try:
            seen.append(Undone(workflow, plan, order).run())
        except Exception as error:
            again = f"python -m tests.simulation --seed {seed}"
            raise AssertionError(f"seed {seed}, undo, order {order}: {error}\nrun it again: {again}") from error
    return seen


def agree(verdict: Verdict, seen: Observed) -> None:
    """What was seen is what the reference allows. Raises Broken."""
    statuses = verdict.statuses | ({"cancelled"} if seen.cancelled else set())
    if seen.cut:  # a container may fail for it, and another path is followed: what must hold then is in `watch`
        require(seen.status in {"succeeded", "failed", "cancelled"}, f"the run {seen.status}")
        return
    require(seen.status in statuses, f"the run {seen.status}, the reference says {sorted(verdict.statuses)}")
    if not seen.cancelled:
        missing = sorted(verdict.sure - seen.decided.keys())
        require(not missing, f"never decided: {missing}")
    hastened = False  # an attempt ended while its run or branch was given up: not retried, what hung on it is pruned
    for label, got in seen.decided.items():
        if _is_astray(seen, label):
            continue
        expected = verdict.decided.get(label)
        unsure = seen.cancelled or label not in verdict.sure
        if unsure and hastened and got == PRUNED:
            continue
        if got != expected:
            ran = expected != PRUNED if expected else _began(verdict, label)
            if not (unsure and got[0] == "failed" and ran):
                raise Broken(f"{label} ended {got}, the reference says {expected or 'it is never decided'}")
            hastened = True
        elif not (unsure and got[0] == "failed"):
            late = [past for past in verdict.past[label] if seen.position.get(past, 1 << 30) >= seen.position[label]]
            require(not late, f"{label} was decided before {sorted(late)}")
    for label, count in seen.counts.items():
        if _is_astray(seen, label):
            continue
        require(count == verdict.counts[label], f"{label} left after {count} scopes, not {verdict.counts[label]}")


def _is_astray(seen: Observed, label: str) -> bool:
    """Whether this comes in a cleanup after a child run that was cancelled with its run: the block fails that waits for
    the child, and another path is followed. What must hold then is in `watch`."""
    scope = label.partition("@")[2] + "/"
    return any(
        scope.startswith(f"{cleanup}/") and seen.position[label] > since for cleanup, since in seen.astray.items()
    )


def _began(verdict: Verdict, label: str) -> bool:
    """Whether this is the end of a loop that the reference sees stop later: its test may have been running."""
    return ":end" in label and verdict.decided.get(label.replace(":end", ":start")) == ("succeeded", "out")


def run_again(workflow: Workflow, plan: Plan, table: Table, verdict: Verdict, first: Observed, rng: Random) -> None:
    """Run from a block: it and what follows from it run again and come to the same; everything else is reused."""
    again = {rng.choice(workflow.blocks).id}
    for block in workflow.blocks:  # in an order in which every edge points forward
        if block.id in again:
            again |= {target for _, target in block.out}
    expected = Verdict(statuses=verdict.statuses)
    reuse: dict[int, str | None] = {}
    for label, step in verdict.decided.items():
        if _outermost(label) in again or not _outermost(label):  # the cleanup of the run comes again in any case
            expected.decided[label] = step
        elif "@" not in label:
            expected.decided[label] = PRUNED if step == PRUNED else ("succeeded", step[1])
            number = plan.node_index(label)
            if step != PRUNED and number is not None:
                reuse[number] = first.decided[label][1]
    expected.sure = verdict.sure & expected.decided.keys()
    expected.past = {label: verdict.past[label] & expected.sure for label in expected.decided}
    expected.counts = dict.fromkeys(expected.decided, 0)  # a reused container opens nothing
    expected.counts |= {
        label: n for label, n in verdict.counts.items() if _outermost(label) in again or not _outermost(label)
    }
    agree(expected, Drive(workflow, plan, table, order=9, faults=Faults.draw(rng), reuse=reuse).run())


def fork(workflow: Workflow, plan: Plan, table: Table, verdict: Verdict, first: Observed, rng: Random) -> None:
    """A run that continues from any place in the journal of another one comes to what the other one should come to."""
    failed = [seq for seq, event in enumerate(first.journal, 1) if isinstance(event, NodeFailed)]
    at_failure = failed and rng.random() < 0.5  # few places, and much may belong to one: a branch is given up with it
    seq = rng.choice(failed) if at_failure else rng.randint(1, len(first.journal))
    copied = first.journal[: fork_point(first.journal, seq)]
    ended = [event for event in copied if isinstance(event, RunCancelling | RunFinished)]
    require(not ended, f"a fork takes over the end of the other run: {ended}")
    state = fold(plan, copied)
    if state.phase is not RunPhase.FAILING and state.ending is None:
        drive = Drive(workflow, plan, table, order=8, faults=Faults.draw(rng))
        agree(verdict, drive.go_on(copied))


def _outermost(label: str) -> str:
    """The root block that a label belongs to; "" for the cleanup of the run."""
    node, _, scope = label.partition("@")
    return re.split(r"[#\[:/]", scope, maxsplit=1)[0] if scope else node.partition(":")[0]

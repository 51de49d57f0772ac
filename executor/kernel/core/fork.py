"""Decides which nodes of a plan run after which, and where a journal may be cut, so that a new run can continue from
its beginning.

One fact gives several events, and they are recorded together; a cut between two of them would leave a wait closed and
its node undecided, or a variable changed by a block that is about to run again. The journal does not mark where one
fact ends, so the cut is moved past what belongs to the event it falls on.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.kernel.core import events as e


def root_of(plan: Plan, number: int) -> int:
    """Return the node itself, or the start sentinel of the outermost container around it."""
    region = plan.region_of[number]
    while region > 0:
        number = plan.regions[region].start
        region = plan.regions[region].parent
    return number


def followers(plan: Plan, number: int) -> set[int]:
    """Return the node and all that its edges lead to."""
    found = {number}
    todo = [number]
    while todo:
        for edge in plan.nodes[todo.pop()].out:
            if edge.target not in found:
                found.add(edge.target)
                todo.append(edge.target)
    return found


def follows(plan: Plan, key: NodeKey, other: NodeKey) -> bool:
    """Returns True if `other` is `key`, or runs only after it: later in its scope, in a later iteration, or after a
    container."""
    (path, number), (other_path, other_number) = key, other
    depth = 0
    while depth < min(len(path), len(other_path)) and path[depth] == other_path[depth]:
        depth += 1
    inside = depth < len(path)
    if inside and depth < len(other_path) and path[depth][0] == other_path[depth][0]:
        return plan.regions[path[depth][0]].kind == "loop" and other_path[depth][1] > path[depth][1]
    here = plan.regions[path[depth][0]].end if inside else number
    there = plan.regions[other_path[depth][0]].start if depth < len(other_path) else other_number
    # Before the end of the container there is its start, which opens the iterations and branches that follow.
    return there in followers(plan, here) or (inside and there == plan.regions[path[depth][0]].start)


def before(plan: Plan, number: int) -> set[int]:
    """Return the nodes whose output may be there when this one runs: those with a way to it or to a container around
    it, what is in such containers, and the whole body of a loop around it."""
    found: set[int] = set()
    at = number
    while True:
        todo = [at]
        while todo:
            for source in plan.sources[todo.pop()]:
                if source not in found:
                    found.add(source)
                    todo.append(source)
        region = plan.region_of[at]
        if region <= 0:
            break
        if plan.regions[region].kind == "loop":
            found.update(_within(plan, region))
        at = plan.regions[region].start
        found.add(at)
    for node in tuple(found):
        if plan.nodes[node].sentinel == "end":
            found.update(_within(plan, plan.nodes[node].body))
    return found - {number}


def _within(plan: Plan, region: int) -> set[int]:
    inside = {number for number, chain in enumerate(plan.chains) if region in chain}
    return {number for number, home in enumerate(plan.region_of) if home in inside}


def fork_point(events: Sequence[e.Event], seq: int) -> int:
    """Return how many of `events`, which begin a journal, a fork at `seq` takes over: to the end of the step that `seq`
    falls into, and never the end of a run, or what was recorded because it was cancelled."""
    end = _open_end(events)
    seq = max(1, min(seq, end))
    while seq < end and _belongs(events, seq):
        seq += 1
    return seq


def _open_end(events: Sequence[e.Event]) -> int:
    for index, event in enumerate(events):
        if isinstance(event, e.RunCancelling):
            return index
        if isinstance(event, e.NodeSucceeded) and event.end_run:
            while _comes_with_end(events[index - 1], event.key):
                index -= 1
            return index
    end = len(events)
    if isinstance(events[-1], e.RunFinished):
        end -= 1
        while _is_cancelled_wait(events[end - 1]):
            end -= 1
    return end


def _comes_with_end(event: e.Event, key: NodeKey) -> bool:
    """Returns True if the event is recorded with the end of block `key`, before it."""
    before = isinstance(event, e.VariablesPatched | e.RunContinuing) or _is_cancelled_wait(event)
    return before and getattr(event, "key", None) == key


def _belongs(events: Sequence[e.Event], seq: int) -> bool:
    """Returns True if event number `seq + 1` was recorded for the same fact as the one before it."""
    last, following = events[seq - 1], events[seq]
    if isinstance(following, e.NodeSkipped) and following.reason == "pruned":
        return True
    if _is_cancelled_wait(following):
        return True  # a node failed, and a container around it caught that
    if isinstance(following, e.WaitOpened) and following.beside:
        return True
    if isinstance(last, e.WaitOpened) and last.each and isinstance(following, e.WaitOpened | e.NodeLeft):
        return following.key == last.key
    if isinstance(last, e.WaitClosed):
        # A wait that is not needed any more closes before its node leaves or ends.
        return last.outcome != "cancelled" or getattr(following, "key", None) == last.key
    if isinstance(last, e.StepStarted) and last.kind == "wait" and isinstance(following, e.StepStarted | e.WaitOpened):
        return following.key == last.key  # it opens with others
    if isinstance(last, e.StepLost):
        return True  # with it the attempt ended, or its wait did
    if isinstance(last, e.VariablesPatched):
        same = getattr(following, "key", None) == last.key and not isinstance(following, e.NodeStarted)
        return same or isinstance(following, e.VariablesPatched)
    # a run from a block begins with what the blocks it takes over did to the variables
    return isinstance(last, e.RunStarted) and isinstance(following, e.VariablesPatched)


def _is_cancelled_wait(event: e.Event) -> bool:
    return isinstance(event, e.WaitClosed) and event.outcome == "cancelled"

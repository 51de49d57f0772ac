"""Decides where a journal may be cut, so that a new run can continue from its beginning.

One fact gives several events, and they are recorded together; a cut between two of them would leave a wait closed and
its node undecided, or a variable changed by a block that is about to run again. The journal does not mark where one
fact ends, so the cut is moved past what belongs to the event it falls on.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.kernel.core.events import (
    Event,
    NodeSkipped,
    NodeStarted,
    NodeSucceeded,
    RunCancelling,
    RunFinished,
    RunStarted,
    StepLost,
    VariablesPatched,
    WaitClosed,
    WaitOpened,
)


def fork_point(events: Sequence[Event], seq: int) -> int:
    """Return how many of `events`, which begin a journal, a fork at `seq` (1 or more) takes over. The end of a run is
    never taken over: what was recorded because it ended, or was cancelled, is cut off. The rest of the step that `seq`
    falls into is added."""
    end = _open_end(events)
    seq = max(1, min(seq, end))
    while seq < end and _belongs(events, seq):
        seq += 1
    return seq


def _open_end(events: Sequence[Event]) -> int:
    """Return the number of events before the run began to end."""
    for index, event in enumerate(events):
        if isinstance(event, RunCancelling):
            return index
        if isinstance(event, NodeSucceeded) and event.end_run:
            patched = events[index - 1]
            return index - 1 if isinstance(patched, VariablesPatched) and patched.key == event.key else index
    end = len(events)
    if isinstance(events[-1], RunFinished):
        end -= 1
        while _is_cancelled_wait(events[end - 1]):
            end -= 1
    return end


def _belongs(events: Sequence[Event], seq: int) -> bool:
    """Returns True if event number `seq + 1` was recorded for the same fact as the one before it."""
    last, following = events[seq - 1], events[seq]
    if isinstance(following, NodeSkipped) and following.reason == "pruned":
        return True
    if _is_cancelled_wait(following):
        return True  # a node failed, and a container around it caught that
    if isinstance(following, WaitOpened) and following.beside:
        return True
    if isinstance(last, WaitClosed):
        return last.outcome != "cancelled"
    if isinstance(last, StepLost):
        return True  # with it the attempt ended, or its wait did
    if isinstance(last, VariablesPatched):
        same = getattr(following, "key", None) == last.key and not isinstance(following, NodeStarted)
        return same or isinstance(following, VariablesPatched)
    # a run from a block begins with what the blocks it takes over did to the variables
    return isinstance(last, RunStarted) and isinstance(following, VariablesPatched)


def _is_cancelled_wait(event: Event) -> bool:
    return isinstance(event, WaitClosed) and event.outcome == "cancelled"

"""A replayed run beside its recording: what is the same in each block and in the whole, and the first differences."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from compiler.plan import Plan
from executor.kernel.handler.base import Registry
from executor.service.replay.evaluate import Scored
from executor.service.replay.play import Call, Played
from executor.service.replay.recording import Outcome, Recording, Used
from executor.service.views.diff import PREVIEW_CHARS, ValueDiff, value_diffs
from executor.service.views.run import Slices

DIFFERENCES_MAX: Final = 50  # of one run
BlockResult = Literal["same", "changed", "would_call", "unknown", "not_reached"]
RunResult = Literal["same", "changed", "other_way", "would_call", "failed", "not_replayed", "played", "not_called"]
_WORST: Final = ("same", "not_reached", "unknown", "changed", "would_call")  # of the iterations of one block
_VERBS: Final = {
    "email": "send a mail", "http": "send a request", "sql": "run SQL", "redis": "send a command to Redis",
    "run_workflow": "start a run",
}  # fmt: skip


class NodeReplay(Struct, frozen=True):
    """A node key with another result, or that would be called. `value`: the first difference of its output, or of the
    input of a call; `would`: what a call does, such as `send a mail`; `sends`: with it something leaves weft;
    `answered`: the recorded answer of a person is taken for it."""

    key: str
    block: str
    result: BlockResult
    value: ValueDiff | None
    would: str = ""
    sends: bool = False
    answered: bool = False
    error: str = ""


class Way(Struct, frozen=True):
    """The first node that leaves by another handle, and the names of the blocks that follow there."""

    key: str
    block: str
    before: tuple[str, ...]
    now: tuple[str, ...]


class RunReplay(Struct, frozen=True):
    """The result of a document with a recorded run.

    result: same; changed (other values); other_way (another branch); would_call (a block would reach outside or ask
    with another input, and what follows it is unknown); failed (it fails now); not_replayed; played (a row that ended);
    not_called (a model, for the budget). `reason`: of the last five. `before`, `now`: how the run ended, and would end,
    null if that is unknown. `blocks`: the result of each, of its iterations the one that differs most. `differences`
    has at most 50. `used`: by models now, `recorded` in the run. A row of data has its number as `run`."""

    run: str
    workflow: str
    version: int | None
    created_at_ms: int
    before: str
    result: RunResult
    reason: str = ""
    now: str | None = None
    way: Way | None = None
    blocks: dict[str, BlockResult] = {}
    differences: tuple[NodeReplay, ...] = ()
    used: Used = field(default_factory=Used)
    recorded: Used | None = None
    score: Scored | None = None


def of_row(recording: Recording, played: Played, registry: Registry) -> RunReplay:
    """Return the result of a row, which has no recording to be compared with."""
    row, end = recording.row, None if played.end is None else played.end.status
    verdict, reason = _verdict(played, "succeeded", {}, None, registry)
    head = row.id, row.workflow, None, row.created_at_ms, ""
    return RunReplay(*head, "played" if verdict in ("same", "changed") else verdict, reason, end, used=played.used)


async def compare(recording: Recording, played: Played, plan: Plan, registry: Registry) -> RunReplay:
    slices = Slices()
    found: list[NodeReplay] = []
    blocks: dict[str, BlockResult] = {}
    way: Way | None = None
    before = {key: was for key, was in recording.nodes.items() if was.ended is not None}
    for key in {**before, **played.nodes, **played.calls}:
        was, now, call = before.get(key), played.nodes.get(key), played.calls.get(key)
        node = (was or now or played.calls[key]).node  # one of the three is there
        if call is not None:
            result: BlockResult = "would_call"
        elif now is not None:
            result = "same" if was is not None and was.came_to(now) else "changed"
        else:
            result = "unknown" if played.end is None and key not in played.pruned else "not_reached"
        blocks[node.block] = max(blocks.get(node.block, "same"), result, key=_WORST.index)
        if way is None and was is not None and now is not None and was.route != now.route:
            way = Way(key, node.block, _after(recording.plan, was), _after(plan, now))
        if result in ("changed", "would_call") and len(found) < DIFFERENCES_MAX:
            shown = (_shown(was), _shown(now)) if call is None else (_params(call.before), _params(call.now))
            values, _ = await value_diffs(*shown, slices)
            of_call = () if call is None else (_would(call, registry), call.sends, call.answered)
            one = NodeReplay(key, node.block, result, values[0] if values else None, *of_call)
            error = None if now is None else now.error
            found.append(one if error is None else msgspec.structs.replace(one, error=error.message[:PREVIEW_CHARS]))
    row, end = recording.row, None if played.end is None else played.end.status
    verdict, reason = _verdict(played, row.status, blocks, way, registry)
    head = row.id, row.workflow, row.version, row.created_at_ms, row.status
    recorded = Used()
    for was in recording.nodes.values():
        recorded.add(was.used.cost_usd, was.used.tokens, was.used.ms)
    return RunReplay(*head, verdict, reason, end, way, blocks, tuple(found), played.used, recorded)


def _verdict(
    played: Played, before: str, blocks: dict[str, BlockResult], way: Way | None, registry: Registry
) -> tuple[RunResult, str]:
    end = played.end
    if end is not None and end.error is not None and before != "failed":
        return "failed", f"{end.error.block}: {end.error.message[:PREVIEW_CHARS]}"
    if refused := next((call.refused for call in played.calls.values() if call.refused), ""):
        return "not_called", refused
    calls = sorted(played.calls.values(), key=lambda call: not call.sends)  # which sends comes first
    if calls and (calls[0].sends or way is None):
        return "would_call", f"would {_would(calls[0], registry)}"
    if way is not None:
        return "other_way", ""
    differs = {"changed", "not_reached"}.intersection(blocks.values()) or (end is not None and end.status != before)
    return ("changed" if differs else "same"), ""


def _after(plan: Plan, came: Outcome) -> tuple[str, ...]:
    number = plan.node_index(came.node.id)
    edges = () if number is None else plan.nodes[number].out
    return tuple(plan.nodes[edge.target].name for edge in edges if edge.handle == came.route)


def _would(call: Call, registry: Registry) -> str:
    """Return what the block does outside, for a sentence that begins with `would`."""
    if call.would:
        return call.would
    spec = registry.handler(call.node.type).spec
    if spec.category == "people":
        return "ask a person, by a message" if call.sends else "ask a person"
    return _VERBS.get(spec.type, f"call {spec.title}")


def _shown(came: Outcome | None) -> bytes | None:
    if came is None or (came.error is None and came.count is None):
        return None if came is None else came.output
    return msgspec.json.encode({"count": came.count} if came.error is None else {"error": came.error.message})


def _params(input: bytes | None) -> bytes | None:
    return None if input is None else msgspec.json.encode(msgspec.json.decode(input)[1])

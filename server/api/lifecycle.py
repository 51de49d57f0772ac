"""Continuing and repairing runs: a run from a block, a fork from any event, one node again, another version of the
workflow."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from executor.errors import WeftError
from executor.service.topics.lifecycle import How, MigrateAnswer
from executor.service.topics.reruns import BlockFate, Continuation, Target
from executor.service.topics.rewinds import ForkPreview
from executor.service.views import RerunPreview, Submitted, view_of
from server.api.runs import (
    KEY,
    LINKS,
    RunAccepted,
    StartQuery,
    accepted,
    idempotency_key,
    started,
    starts,
)
from server.http.response import Json, Version
from server.http.table import Call, Routes, RouteSpec

RERUNS_MAX: Final = 100  # in one request

Seq = Annotated[int, Meta(ge=1, le=2**53)]


class ForkQuery(Struct, frozen=True):
    seq: Annotated[Seq | None, Meta(description="The event to fork at.")] = None
    node: Annotated[str | None, Meta(description="In place of `seq`: the key of a node with steps.")] = None
    step: Annotated[Seq | None, Meta(description="And the number of the step that has another result.")] = None


class RerunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/rerun. Without `from`, everything runs again. `input` defaults to the input of that run. With
    one of `version`, `draft` (an id) and `document` the run continues with that: what is unchanged is not run again,
    except the blocks `again`, and `from` with all that follows from it."""

    start: str | None = msgspec.field(default=None, name="from")
    input: Any = None
    version: Version | Literal["active", "draft"] | None = None
    draft: str | None = None
    document: dict[str, Any] | None = None
    again: list[str] = []

    def target(self) -> Target | None:
        target = Target(self.version, self.draft, self.document)
        return None if target == Target() and not self.again else target


class RerunManyRequest(RerunRequest, forbid_unknown_fields=True, kw_only=True):
    """POST /api/runs/rerun. `runs` that have ended, each once; the rest is as for one of them. `preview`: change
    nothing, and return what would run."""

    runs: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(min_length=1, max_length=RERUNS_MAX)]
    preview: bool = False


class RerunOfMany(Struct, frozen=True):
    """`source` and the new `run`, which is not `created` if the same request had made it before; or `error` and its
    `code`. `blocks`: of a preview, see Continuation."""

    source: str
    run: str | None = None
    created: bool = False
    blocks: tuple[BlockFate, ...] = ()
    code: str = ""
    error: str = ""


class RerunsAnswer(Struct, frozen=True):
    runs: list[RerunOfMany]


class ForkRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/fork. `outputs`: by node key, in place of the recorded ones. `steps`: results of steps, such
    as calls of an agent, by node key and number of the step; then `seq` may be left out, and is the last event before
    the next step of that node. `params`: by block, in place of those with these names; they count from there on."""

    seq: Seq | None = None
    outputs: dict[str, Any] = {}
    steps: dict[str, dict[str, Any]] = {}
    params: dict[str, dict[str, Any]] = {}


class RetryRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/nodes/{key}/retry takes no fields."""


class MigrateRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/migrate. `version` of the same workflow."""

    version: Version


class ForkAccepted(RunAccepted, frozen=True, kw_only=True):
    """`seq`: the number of events copied from `source`."""

    source: str
    seq: int


class RetryAccepted(RunAccepted, frozen=True, kw_only=True):
    """`how` "now": the run is `source` itself, and its next attempt begins at once. Else it is a new one: "from_block"
    and "from_node": `block` and what follows it run again; "whole_container": `block` is the container around the node,
    and runs again as a whole."""

    source: str
    how: How
    block: str


Made = TypeVar("Made", ForkAccepted, RetryAccepted)


class RerunQuery(Struct, frozen=True):
    start: Annotated[str | None, Meta(description="Id of the block to start from. Default: everything runs again.")] = (
        msgspec.field(default=None, name="from")
    )


class ContinuationQuery(Struct, frozen=True):
    version: Annotated[
        str, Meta(description="A number, `active`, or `draft`.", pattern="^([1-9][0-9]{0,8}|active|draft)$")
    ] = "draft"
    draft: Annotated[str | None, Meta(description="Id of a draft, in place of a version.")] = None
    start: Annotated[str | None, Meta(description="Block that runs again, with all after it.")] = msgspec.field(
        default=None, name="from"
    )


DETAIL_MAX: Final = 1_000  # characters, in an audit row

route = Routes("runs", RouteSpec)


@route(
    "POST",
    "/api/runs/{id}/fork",
    "Fork a run at an event",
    needs="editor",
    status=202,
    statuses=(200, 409),
    params=(KEY,),
    links=LINKS,
)
async def fork(call: Call, id: str, body: ForkRequest) -> Json[ForkAccepted]:
    """Create a run that continues from event `seq`. It copies all events up to there, with the given outputs in place
    of the recorded ones. The source run is not changed. Inside a node with steps, such as an agent, every finished step
    is taken over, not made or paid again; one of them can have another result, or the block other params from there on.
    409: the source run was failing at that event; `seq` is then the last event from which a fork can continue."""
    edits = [*body.outputs, *(f"{key} step {n}" for key, numbers in body.steps.items() for n in numbers), *body.params]
    call.record(_changes(f"at {body.seq or 'a step'}", "changed", dict.fromkeys(edits)))
    forked = await call.engine.lifecycle.fork(
        id, body.seq, body.outputs, steps=body.steps, params=body.params, idempotency_key=idempotency_key(call)
    )
    return _made(view_of(ForkAccepted, accepted(forked), source=id, seq=forked.seq))


@route("GET", "/api/runs/{id}/fork", "Preview a fork", needs="viewer", statuses=(409, 422))
async def preview_fork(call: Call, id: str, query: ForkQuery) -> ForkPreview:
    """Changes nothing. `calls` finished steps are taken over, with what they used; `again` is what the run did after
    them, and the fork may do again (`n`: the number of the step, 0 for a block)."""
    steps = {query.node: {str(query.step): None}} if query.node and query.step else None
    return await call.engine.lifecycle.preview_fork(id, query.seq, steps)


@route(
    "POST",
    "/api/runs/{id}/nodes/{key}/retry",
    "Run one node again",
    needs="editor",
    status=202,
    statuses=(200, 409),
    params=(KEY,),
    links=LINKS,
)
async def retry(call: Call, id: str, key: str, body: RetryRequest) -> Json[RetryAccepted]:
    """For a run that has ended: a new run that runs this node and everything after it again. For an open run: the next
    attempt, if the node is waiting for one, starts now (`created` is false and the run is the same)."""
    retried = await call.engine.lifecycle.retry(id, key, idempotency_key=idempotency_key(call))
    return _made(view_of(RetryAccepted, accepted(retried), source=id, how=retried.how, block=retried.block))


@route("POST", "/api/runs/{id}/migrate", "Move an open run to another version", needs="editor", statuses=(202, 409))
async def migrate(call: Call, id: str, body: MigrateRequest) -> Json[MigrateAnswer]:
    """Move an open run to another version of its workflow. 409: recorded events do not fit that version; `conflicts`
    lists them. 202: the worker of the run has not responded within a few seconds."""
    call.record(f"to version {body.version}")
    answer = await call.engine.lifecycle.migrate(id, body.version)
    return Json(answer, 200 if answer.moved else 202)


def _changes(where: str, what: str, given: Any) -> str:
    if not given:
        return where
    names = ", ".join(given) if isinstance(given, dict) else "another one"
    return f"{where}, {what}: {names}"[:DETAIL_MAX]


def _made(answer: Made) -> Json[Made]:
    return Json(answer, 202 if answer.created else 200, {"Location": f"/api/runs/{answer.run}"})


@route("GET", "/api/runs/{id}/rerun", "Preview a run from a block", needs="viewer", statuses=(409,))
async def preview(call: Call, id: str, query: RerunQuery) -> RerunPreview:
    """Changes nothing. 409: the run has not ended, or the block is inside a container (`container` is the outermost
    one)."""
    return await call.engine.lifecycle.preview_run_from(id, query.start)


@route(
    "GET", "/api/runs/{id}/continuation", "Preview continuing with another version", needs="viewer", statuses=(409, 422)
)
async def continuation(call: Call, id: str, query: ContinuationQuery) -> Continuation:
    """Changes nothing. `fate` of each block: kept, maybe (it runs where its input comes out otherwise), again or new.
    `effect` write: it changes something outside. `calls`: finished calls of a block that had not ended, which are not
    made, or paid, again."""
    version: int | Literal["active", "draft"]
    version = "active" if query.version == "active" else "draft" if query.version == "draft" else int(query.version)
    target = Target(version) if query.draft is None else Target(None, query.draft)
    return await call.engine.lifecycle.preview_go_on(id, target, query.start)


@starts(route, "/api/runs/{id}/rerun", "Run from a block, or continue with another version")
async def rerun(call: Call, id: str, query: StartQuery, body: RerunRequest) -> Response:
    """Create a run of the same document that reuses the results before the block and runs the block and everything
    after it again. Without a block, everything runs again. With a version, a draft or a document the new run is of
    that, and takes over every output whose block and inputs are unchanged."""
    call.record(_changes(_what(body), "input", body.input))
    return await started(call, await _rerun(call, id, body, idempotency_key(call)), query)


@route(
    "POST",
    "/api/runs/rerun",
    "Run many again, or preview that",
    needs="editor",
    statuses=(400, 409),
    params=(KEY,),
)
async def rerun_many(call: Call, body: RerunManyRequest) -> RerunsAnswer:
    """Each as by `POST /api/runs/{id}/rerun`, in order; one that is refused stops none of the others. With
    an Idempotency-Key, a repeated request makes each run once. With `preview`, nothing is changed: send that first to
    list what would be repeated."""
    key, answers = idempotency_key(call), list[RerunOfMany]()
    call.record(_changes(_what(body), "runs", dict.fromkeys(body.runs)))
    for id in dict.fromkeys(body.runs):
        try:
            if body.preview:
                found = await call.engine.lifecycle.preview_go_on(id, body.target(), body.start, again=body.again)
                answers.append(RerunOfMany(id, blocks=found.blocks))
            else:
                made = await _rerun(call, id, body, key and f"{key}:{id}")
                answers.append(RerunOfMany(id, made.run, made.created))
        except WeftError as error:
            answers.append(RerunOfMany(id, code=error.code, error=error.message))
    return RerunsAnswer(answers)


def _what(body: RerunRequest) -> str:
    is_same = body.target() is None
    return f"from {body.start or 'the start'}" if is_same else f"with {body.version or body.draft or 'a document'}"


async def _rerun(call: Call, id: str, body: RerunRequest, key: str | None) -> Submitted:
    target, lifecycle = body.target(), call.engine.lifecycle
    if target is None:
        return await lifecycle.run_from(id, body.start, input=body.input, idempotency_key=key)
    return await lifecycle.go_on(id, target, body.start, again=body.again, input=body.input, idempotency_key=key)

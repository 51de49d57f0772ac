"""Kept runs, and backtests: recorded runs, replayed with a document."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from executor.service.replay.evaluate import Evaluation
from executor.service.topics.backtests import LAST_MAX, Backtest, KeptView
from server.http.errors import Forbidden
from server.http.response import Version
from server.http.table import Call, Routes, RouteSpec


class KeepRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/keep. `note`: what the run is a test of."""

    note: Annotated[str, Meta(max_length=500)] = ""


class KeepDropped(Struct, frozen=True):
    """`dropped` is false if the run was not kept."""

    run: str
    dropped: bool


class KeptRuns(Struct, frozen=True):
    kept: list[KeptView]


class BacktestRequest(Evaluation):
    """POST /api/workflows/{name}/backtest. What is played: `document`, the draft with the id `draft`, `version`, or the
    active version if there is none of them. Against which runs: with `kept` those that are kept, else all that have
    ended; the newest first, at most `last`, after run `before`. Or on `rows`. `model` replaces that of all blocks that
    ask one, `call_models` lets those be called that are asked for something else, and `score` scores the results."""

    document: dict[str, Any] | None = None
    draft: str | None = None
    version: Version | None = None
    kept: bool = False
    last: Annotated[int, Meta(ge=1, le=LAST_MAX)] = 50
    before: str | None = None


route = Routes("runs", RouteSpec)


@route("POST", "/api/runs/{id}/keep", "Keep a run as a test", needs="editor", statuses=(409,))
async def keep(call: Call, id: str, body: KeepRequest) -> KeptView:
    """The run is not deleted by age or number. A second request changes the note. 409: the run has not ended, or its
    workflow has 200 kept runs."""
    return await call.engine.backtests.keep(id, body.note)


@route("DELETE", "/api/runs/{id}/keep", "Keep a run no longer", needs="editor")
async def drop(call: Call, id: str) -> KeepDropped:
    """The run stays, and may be deleted by age again."""
    return KeepDropped(id, await call.engine.backtests.drop(id))


@route("GET", "/api/workflows/{name}/kept", "Runs that are kept as tests", tag="workflows", needs="viewer", always=True)
async def kept(call: Call, name: str) -> KeptRuns:
    """The run that was kept last comes first. Empty also for a workflow that does not exist: runs of a draft can be
    kept."""
    return KeptRuns(await call.engine.backtests.kept(name))


@route(
    "POST",
    "/api/workflows/{name}/backtest",
    "Replay recorded runs with a document",
    tag="workflows",
    needs="editor",
    audit=False,
)
async def backtest(call: Call, name: str, body: BacktestRequest) -> Backtest:
    """Nothing outside is called but models, with `call_models`, and nothing is stored. Blocks that are asked for the
    same as in the run have its results; others are executed if they only compute; what would reach outside is reported.
    One answer has at most 50 runs, or those of 3 seconds: repeat with `before` = `next` and a smaller `last` for the
    rest, or with the rows that it has not, and in both cases with the rest of the budget."""
    if body.draft is not None and call.who.workflows is not None:
        raise Forbidden("This token is only for some workflows.", hint="Send the document of the draft instead.")
    judge = None if body.score is None or body.score.judge is None else body.score.judge.workflow
    reach = call.who.workflows
    if judge is not None and reach is not None and await call.engine.store.named(judge) not in reach:
        raise Forbidden(f"This token is not for the workflow '{judge}'.", hint="Give the judge a model and criteria.")
    return await call.engine.backtests.play(
        name,
        document=body.document,
        draft=body.draft,
        version=body.version,
        kept=body.kept,
        last=body.last,
        before=body.before,
        evaluation=body,
    )

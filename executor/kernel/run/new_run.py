"""A plan, its input and where both come from, as a run to be created; and the ids of runs. Nothing is
stored here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.plan import Plan
from executor.kernel.core import facts as f
from executor.kernel.core.decide import first_event
from executor.kernel.journal.codec import Codec
from executor.kernel.process.tracing import present_parent
from executor.kernel.run.placement import placement_of
from executor.kernel.store.run_rows import NewRun, Record
from executor.kernel.store.topics.drafts import DraftHead
from executor.kernel.values.payload import trimmed

DRAWN_BYTES = 4096  # at once: each draw gives up the interpreter's lock, and costs as much as for one id
RANDOM_DIGITS = 20

random_bytes = os.urandom
_drawn: list[str] = []


class Origin(Struct, frozen=True):
    """The source of a run: a version of a stored workflow, or a document, which may be a draft's. `document` is None
    with a hash if it is stored already."""

    workflow: str
    version: int | None
    document_hash: str | None = None
    document: bytes | None = None
    draft_id: str | None = None
    draft_rev: int | None = None


def origin_of(document: bytes, plan: Plan, draft: DraftHead | None = None) -> Origin:
    """Return the origin of a document that is no version of a stored workflow."""
    digest = hashlib.sha256(document).hexdigest()
    name = (draft.name if draft else "") or plan.name
    return Origin(name, None, digest, document, draft.id if draft else None, draft.rev if draft else None)


def request_hash(*asked: Any) -> str:
    """Return the hash of a request; it must match when an idempotency key is reused."""
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()


def new_run(
    plan: Plan,
    start: f.StartRequested,
    origin: Origin,
    checked: Any,
    *,
    idempotency_key: str | None = None,
    request_hash: str = "",
    taken_over: Sequence[Record] = (),
    priority: int | None = None,
    files: Sequence[str] = (),
    continues: str | None = None,
) -> NewRun:
    """Build a run. `checked` is the input as `check_input` returned it; `taken_over` the records after the first one.
    The run that `start` names as its source must still be there when this one is stored. `priority` replaces the
    workflow's. `files` are those it has from the start; `continues` is the run before it."""
    parent = present_parent()  # of its trace, for readers
    told = {"traceparent": parent} if parent else {}
    if continues is not None:
        told["continues"] = continues
    return NewRun(
        id=start.run,
        workflow=origin.workflow,
        version=origin.version,
        plan_hash=plan.hash,
        plan=plan.encoded,
        input=trimmed(orjson.dumps(checked)),
        records=(
            Codec(plan).to_record(1, start.at_ms, first_event(start), None, told),
            *(replace(record, at_ms=start.at_ms) for record in taken_over),
        ),
        now_ms=start.at_ms,
        idempotency_key=idempotency_key,
        request_hash=request_hash,
        document_hash=origin.document_hash,
        document=origin.document,
        draft_id=origin.draft_id,
        draft_rev=origin.draft_rev,
        sources=(start.source_run,) if start.source_run is not None else (),
        source_run_id=start.source_run,
        placement=placement_of(plan, checked, priority),
        files=tuple(files),
    )


def new_run_id(now_ms: int) -> str:
    """12 hex digits of the time at which the run is made, then 20 random ones. Can be called in any thread.

    Runs that are made together lie together in every index on the id, so a commit of many of them writes few pages.
    The order of ids means nothing: clocks of processes differ, and older runs have 32 random digits.
    """
    while True:
        try:
            return f"{now_ms:012x}{_drawn.pop()}"
        except IndexError:
            digits = random_bytes(DRAWN_BYTES).hex()
            last = len(digits) - RANDOM_DIGITS
            _drawn.extend(digits[start : start + RANDOM_DIGITS] for start in range(0, last + 1, RANDOM_DIGITS))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)  # a forked process must not make the same ids

"""A plan, its input and where both come from, as a run to be created, with its place in the queue; and the ids of runs.
Nothing is stored here."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from compiler.catalog import EVENT
from compiler.plan import Plan
from compiler.references import find, parse
from executor.errors import BlockError, InputInvalid
from executor.kernel.core import facts as f
from executor.kernel.core.decide import first_event
from executor.kernel.journal.codec import Codec
from executor.kernel.process.observe import present_parent
from executor.kernel.process.threads import aside
from executor.kernel.store.run_rows import NewRun, Placement, Record, RunRow
from executor.kernel.store.topics.drafts import DraftHead
from executor.kernel.values import variables as paths
from executor.kernel.values.payload import MISSING, encode, render, trimmed
from executor.kernel.values.run_input import CHAT_INPUT, start_output
from executor.kernel.values.schema import Matches, takes_long, violations

Bound = TypeVar("Bound", int, float)

KEY_LENGTH_MAX: Final = 200
_Reference = tuple[tuple[str | int, ...], str | None]  # where in the input, and the JSON of what stands for nothing


def placement_of(plan: Plan, input: Any, priority: int | None = None) -> Placement:
    """Return the placement of a run. `priority` replaces that of the workflow."""
    settings = plan.settings
    fair = "" if settings.fair is None else filled(settings.fair, input)
    priority = settings.priority if priority is None else priority
    if not (settings.limits or settings.rates):
        return Placement(settings.pool, priority, fair)
    limits = _lowest((filled(limit.key, input), limit.at_most) for limit in settings.limits)
    rates = _lowest((filled(rate.key, input), rate.per_s) for rate in settings.rates)
    return Placement(settings.pool, priority, fair, limits, rates)


def _lowest(bounds: Iterable[tuple[str, Bound]]) -> tuple[tuple[str, Bound], ...]:
    """Two texts may be the same key."""
    lowest: dict[str, Bound] = {}
    for key, bound in bounds:
        lowest[key] = min(bound, lowest.get(key, bound))
    return tuple(lowest.items())


def filled(text: str, input: Any) -> str:
    return as_key("".join(part if isinstance(part, str) else _value(part, input) for part in _parts(text)))


def as_key(text: str) -> str:
    """Return text as a key. A long one becomes its beginning and a hash: keys are in indexes."""
    key = "".join(character if character >= " " else " " for character in text)
    if len(key) > KEY_LENGTH_MAX:
        key = f"{key[: KEY_LENGTH_MAX // 2]}...{hashlib.sha256(key.encode()).hexdigest()}"
    return key


def _value(reference: _Reference, input: Any) -> str:
    path, default = reference
    value = paths.read(input, path)
    if default is not None and (value is MISSING or value is None):
        value = orjson.loads(default)
    return render(value)


@lru_cache(maxsize=1_000)
def _parts(text: str) -> tuple[str | _Reference, ...]:
    """Split a text into literal parts and references. The compiler has checked the references: they read the input."""
    parts: list[str | _Reference] = []
    end = 0
    for found in find(text):
        parsed = parse(found.text)
        assert parsed is not None, text
        parts += [text[end : found.start], (parsed.segments[1:], parsed.default)]
        end = found.end
    return (*parts, text[end:])


BOUNDS_HINT: Final = "values can be nested 64 levels deep and have up to 16 MiB"
INPUT_SHOWN: Final = 6  # fields of an input in a hint
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


def origin_as(row: RunRow) -> Origin:
    """Return the origin of a run that is like another one."""
    return Origin(row.workflow, row.version, row.document_hash, None, row.draft_id, row.draft_rev)


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
    extra = {"traceparent": parent} if parent else {}
    if continues is not None:
        extra["continues"] = continues
    return NewRun(
        id=start.run,
        **asdict(origin),
        plan_hash=plan.hash,
        plan=plan.encoded,
        input=trimmed(orjson.dumps(checked)),
        records=(
            Codec(plan).to_record(1, start.at_ms, first_event(start), None, extra),
            *(replace(record, at_ms=start.at_ms) for record in taken_over),
        ),
        now_ms=start.at_ms,
        idempotency_key=idempotency_key,
        request_hash=request_hash,
        started_by=start.by,
        sources=(start.source_run,) if start.source_run is not None else (),
        source_run_id=start.source_run,
        placement=placement_of(plan, checked, priority),
        files=tuple(files),
    )


async def check_input(plan: Plan, input: Any, matches: Matches | None = None) -> Any:
    """Return the input with the schema's top-level defaults filled in. Raises InputInvalid, naming every field that
    does not fit: a run that could only fail at its first block is refused instead."""
    value: Any = {} if input is None else input
    schema, source = _schema_of(plan)
    work = partial(_checked_input, plan, value, schema, source, matches)
    return await aside(work) if schema and takes_long(schema, value) else work()


def _schema_of(plan: Plan) -> tuple[Mapping[str, Any] | None, str]:
    """Return the schema of the input and where it is declared."""
    trigger = plan.nodes[plan.regions[0].entries[0]]
    schema, source = plan.input_schema, "`input` of the workflow"
    if trigger.type == "webhook":  # its input is a request: the document's schema is for the others
        source = f"`body_schema` of the webhook block '{trigger.block}'"
        body = orjson.loads(bytes(trigger.params)).get("body_schema")
        schema = {"properties": {"body": body}, "required": ["body"]} if body else None
    elif trigger.type == "form_trigger":
        own = orjson.loads(bytes(trigger.params)).get("fields")
        schema, source = (own, f"`fields` of the form block '{trigger.block}'") if own else (schema, source)
    elif trigger.type.startswith(EVENT):
        schema = None
    elif trigger.type == "chat_trigger":
        schema, source = CHAT_INPUT, f"that of the chat block '{trigger.block}'"
    return schema, source


def _checked_input(
    plan: Plan, value: Any, schema: Mapping[str, Any] | None, source: str, matches: Matches | None
) -> Any:
    trigger = plan.nodes[plan.regions[0].entries[0]]
    if schema:
        value = copy.deepcopy(value)
        if isinstance(value, dict):
            for name, field in (schema.get("properties") or {}).items():
                if isinstance(field, dict) and "default" in field:
                    value.setdefault(name, copy.deepcopy(field["default"]))
        found = violations(schema, value, matches)
        if found:
            fields = ", ".join(f'"{name}": ...' for name in list(schema.get("properties") or {})[:INPUT_SHOWN])
            by_name = "" if isinstance(value, dict) else f"; the input is an object: {{{fields}}}"
            raise InputInvalid(
                mismatch("the input", found),
                pointer="/input" + found[0]["pointer"],
                hint=f"the schema is {source}{by_name}",
                errors=found,
            )
    if trigger.type == "start" and not trigger.needs:
        try:
            start_output(orjson.loads(bytes(trigger.params)), value)
        except BlockError as error:
            raise InputInvalid(error.message, code=error.code, pointer="/input", hint=error.hint) from error
    try:
        encode({"input": value})  # as the start block puts it out; bounds: depth, size
    except BlockError as error:
        raise InputInvalid(error.message, code=error.code, pointer="/input", hint=BOUNDS_HINT) from None
    return value


def mismatch(what: str, found: list[dict[str, str]]) -> str:
    """Return the message about a value that does not match its schema."""
    first = found[0]
    where = f" at {first['pointer']}" if first["pointer"] else ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{what} does not match its schema{where}: {first['message']}{more}"


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

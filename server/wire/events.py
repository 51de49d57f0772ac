"""A journal record as an event, over SSE and in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from msgspec import Meta, Struct

from executor.kernel.journal.codec import key_of
from executor.kernel.store.run_rows import Record
from server.wire import EVENTS_PAGE_MAX, Preview, beginning


class EventOnWire(Struct, frozen=True):
    """One event of a run, over SSE and in JSON. `key` is the node with its iteration and branch,
    `send@review#5/fan[2]`; `path` is the part after `@`; `block` is the block of the node. `data.output` has the output
    of the node, if any."""

    run: str
    seq: int
    at_ms: int
    type: str
    node: str | None
    block: str | None
    path: str
    key: str | None
    attempt: int
    data: dict[str, Any]


class EventPage(Struct, frozen=True):
    """`count`: all events that match the filters. `next`: pass it as `after` for the next page; null at the end."""

    events: list[EventOnWire]
    count: int
    next: int | None


class EventsQuery(Struct, frozen=True):
    """A stream uses `after` and `preview` alone."""

    after: Annotated[int, Meta(description="Continue after this `seq`.")] = 0
    limit: Annotated[int, Meta(ge=1, le=EVENTS_PAGE_MAX, description="JSON: events per page.")] = 1000
    node: (
        Annotated[str, Meta(description="JSON: only events of this node, in all its iterations and branches.")] | None
    ) = None
    type: Annotated[str, Meta(description="JSON: only these types, separated by commas.")] | None = None
    since: Annotated[int, Meta(description="JSON: only events at or after this time, Unix milliseconds.")] | None = None
    preview: Preview | None = None


def encode_record(run: str, record: Record, preview: int | None = None) -> bytes:
    """One record as the JSON of EventOnWire, on one line. With `preview` an output over that many bytes is cut: in its
    place `data` has "output": null, "truncated": true, "size": its bytes, and "preview": the beginning of its JSON (not
    for outputs over 256 KiB, which are not with the record). Other members of `data` that are as large become null."""
    node = record.node
    data = _spliced(record.data, record.output) if preview is None else _cut(record, preview)
    return _one_line(
        orjson.dumps(
            {
                "run": run,
                "seq": record.seq,
                "at_ms": record.at_ms,
                "type": record.type,
                "node": node,
                "block": node.partition(":")[0] if node else None,
                "path": record.path,
                "key": key_of(record),
                "attempt": record.attempt,
                "data": orjson.Fragment(data),
            }
        )
    )


def page_events(run: str, records: Sequence[Record], preview: int | None) -> list[Any]:
    """Events of a page, as JSON that is spliced in."""
    return [orjson.Fragment(encode_record(run, record, preview)) for record in records]


def _spliced(data: bytes | None, output: bytes | None) -> bytes:
    """`data` (a JSON object) with `"output"` put in, both as bytes."""
    head = (data or b"{}").strip()
    if output is None:
        return head
    comma = b"" if head[1:-1].strip() == b"" else b","
    return head[:-1] + comma + b'"output":' + output + b"}"


def _cut(record: Record, most: int) -> bytes:
    """Return `data` with the output, its large members cut; see encode_record."""
    data, output = record.data, record.output
    in_blob = output is None and data is not None and b'"blob"' in data
    if not in_blob and len(data or b"") <= most and len(output or b"") <= most:
        return _spliced(data, output)
    fields: dict[str, Any] = orjson.loads(data) if data else {}
    size = 0
    if isinstance(fields.get("blob"), str):
        size = fields["size"]
        fields["output"] = None
    elif output is not None and len(output) > most:
        size = len(output)
        fields |= {"output": None, "preview": beginning(output, most)}
        output = None
    for name, value in list(fields.items()) if len(data or b"") > most else ():
        if name == "ops":  # a reader that folds them needs the names of the changed variables
            fields[name] = [[*op[:2], None if len(orjson.dumps(op[2:])) > most else op[2]] for op in value]
        elif len(orjson.dumps(value)) > most:
            fields[name] = None
        else:
            continue
        size = max(size, len(data or b""))
    if size:
        fields |= {"truncated": True, "size": size}
    return _spliced(orjson.dumps(fields), output)


def _one_line(data: bytes) -> bytes:
    """Line breaks outside strings are mere white space in JSON, but would end an SSE data line."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data

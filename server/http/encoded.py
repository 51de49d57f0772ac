"""The JSON of one event, over SSE and in pages."""

from __future__ import annotations

from typing import Any

import orjson

from executor.kernel.journal.codec import key_of
from executor.kernel.store.run_rows import Record
from server.http.shapes import beginning


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

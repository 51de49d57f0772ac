"""Responses: JSON of structs, and the answer that a workflow's response block wrote with its status, headers and body.

Workflow authors choose the headers and may copy data of others into the body, and this answer comes from the server's
own address. So only headers that describe the body and those that begin with `x-` are sent, and a browser treats the
body as a page without an origin (CSP sandbox): it cannot act as the signed-in user.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec
import orjson
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from compiler.diagnostics import Diagnostic
from executor.kernel.journal.codec import key_of
from executor.kernel.store.run_rows import Record
from executor.kernel.store.statements import COUNT_MAX, RunStatus
from executor.kernel.store.topics.contents import FileHead
from executor.kernel.store.topics.waits import WaitStatus
from executor.kernel.store.topics.workflows import VERSION_MAX
from executor.kernel.values.files import ANY_MEDIA, Files
from server.http.errors import problem
from server.ui import takes_gzip

Status = TypeVar("Status", RunStatus, WaitStatus)
T = TypeVar("T")
S = TypeVar("S", bound=Struct)
DraftName = Annotated[str, Meta(max_length=200)]
PersonName = Annotated[str, Meta(max_length=200)]
ShortText = Annotated[str, Meta(max_length=500)]
AnyJson = Annotated[Any, Meta(description="Any JSON.")]
Version = Annotated[int, Meta(ge=1, le=VERSION_MAX)]
PAGE_MAX = 1000
EVENTS_PAGE_MAX = 10_000
PREVIEW_BYTES_MAX = 16 * 1024 * 1024  # as large as any output
WAIT_S_MAX = 60.0


# Query parameters that several routes have.
Preview = Annotated[
    int,
    Meta(
        ge=0,
        le=PREVIEW_BYTES_MAX,
        description="Cut outputs over this many bytes: `output` is then null, `truncated` true, `size` the number of "
        "bytes, and `preview` has the beginning of the JSON. The whole is at /api/runs/{id}/nodes/{key}.",
    ),
]

StoredVersion = Annotated[int, Meta(ge=1, description="A stored version. Default: the active one.")]


def capped(counts: Mapping[Status, int]) -> list[Status]:
    return [status for status, count in counts.items() if count >= COUNT_MAX]


def fragment(data: bytes | None) -> Any:
    """Stored JSON, spliced in as it is; None becomes null."""
    return None if data is None else msgspec.Raw(data)


def to_json(value: Any) -> bytes:
    """Encode structs, stored JSON and plain values together. msgspec encodes a struct ten times as fast as Python could
    turn it into plain values."""
    if isinstance(value, Struct):
        return msgspec.json.encode(value)
    return orjson.dumps(value, default=_part, option=orjson.OPT_NON_STR_KEYS)


def _part(value: Any) -> orjson.Fragment:
    return orjson.Fragment(msgspec.json.encode(value))


def beginning(data: bytes, length: int) -> str:
    """Return the first `length` characters of JSON bytes, with `...` at the end if there are more."""
    text = data[: 4 * (length + 1)].decode(errors="ignore")  # no character takes more than four bytes
    return text if len(text) <= length else text[:length] + "..."


USER_ID = r"^[a-z0-9][a-z0-9._@-]{0,99}$"


class Problem(Struct, frozen=True):
    """A refusal, RFC 9457. More members by code."""

    type: str
    title: str
    status: int
    code: Annotated[str, Meta(description="Stable code for programs.")]
    detail: Annotated[str, Meta(description="Description for people.")]
    pointer: Annotated[str, Meta(description="RFC 6901 pointer into the request body.")] | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    diagnostics: list[Diagnostic] | UnsetType = UNSET


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
    head = (data or b"{}").strip()
    if output is None:
        return head
    comma = b"" if head[1:-1].strip() == b"" else b","
    return head[:-1] + comma + b'"output":' + output + b"}"


def _cut(record: Record, most: int) -> bytes:
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


# Media types that browsers may show: none of these runs scripts. Files of others are sent as ANY_MEDIA.
_SHOWN_AS: Final = frozenset(
    {
        "application/gzip",
        "application/json",
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/zip",
        "audio/mpeg",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "text/csv",
        "text/markdown",
        "text/plain",
        "text/tab-separated-values",
        "video/mp4",
    }
)
_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})")
_PLAIN = re.compile(r'[^\x20-\x7e]|["\\%]')


def download(files: Files, id: str, head: FileHead, wanted: str | None, if_none_match: str | None) -> Response:
    """Return the file, or one part of it. `wanted` is the Range header; anything but one range of bytes is ignored, as
    the standard permits."""
    tag = f'"{id}"'
    headers = {
        "Content-Disposition": disposition(head.name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "private, no-cache",
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if if_none_match is not None and tag in (part.strip() for part in if_none_match.split(",")):
        return Response(status_code=304, headers=headers)
    media = head.media_type if head.media_type in _SHOWN_AS else ANY_MEDIA
    found = _RANGE.fullmatch(wanted) if wanted else None
    start, end, status = 0, head.size, 200
    if found is not None and (found[1] or found[2]):
        start, end = _bounds(found[1], found[2], head.size)
        if start >= end:
            known = {"Content-Range": f"bytes */{head.size}"}
            return problem(
                416, "range_invalid", f"The file has {head.size} bytes, none of them in this range.", headers=known
            )
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{head.size}"
    headers["Content-Length"] = str(end - start)
    headers["Content-Type"] = f"{media}; charset=utf-8" if media.startswith("text/") else media
    return StreamingResponse(_bytes(files, head, start, end), status, headers)


def disposition(name: str) -> str:
    """The name for old clients in ASCII, and as it is."""
    return f"attachment; filename=\"{_PLAIN.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


async def _bytes(files: Files, head: FileHead, start: int, end: int) -> AsyncIterator[bytes]:
    async for part in files.content(head, start, end):
        yield part


_ALLOWED = frozenset(
    {
        "content-disposition",
        "content-language",
        "content-type",
        "etag",
        "last-modified",
        "location",
        "retry-after",
        "vary",
    }
)
# Browsers and proxies obey these.
_FORBIDDEN = re.compile(r"x-(accel-|content-|dns-|frame-|permitted-|sendfile|ua-|webkit-|xss-)")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,4096}")
_ITEMS_AT_ONCE = 500
_BODYLESS = frozenset({204, 205, 304})


NO_STORE: Final = (b"cache-control", b"no-store")
JSON: Final = (b"content-type", b"application/json")


class Json(Response, Generic[T]):
    """`value` as JSON; structs, stored JSON and plain values together. Never cached."""

    media_type = "application/json"
    background = None

    def __init__(self, value: T, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.body = to_json(value)
        self.status_code = status
        if headers:
            self.init_headers({"Cache-Control": "no-store", **headers})
        else:
            self.raw_headers = [NO_STORE, (b"content-length", b"%d" % len(self.body)), JSON]


class PackedJson(Json[T]):
    """The same answer, compressed for clients that accept gzip. For long answers that seldom change: the last ones are
    kept. `accept`: the Accept-Encoding of the request."""

    def __init__(self, value: T, accept: str | None) -> None:
        super().__init__(value)
        headers = {"Vary": "Accept-Encoding"}
        if takes_gzip(accept or ""):
            self.body = _gzip(self.body)
            headers["Content-Encoding"] = "gzip"
        self.init_headers({"Cache-Control": "no-store", **headers})


@lru_cache(maxsize=4)
def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)


async def long_json(value: S, name: str) -> Json[S]:
    """The same answer, encoded and sent while others run: in field `name` is a list that may have 100,000 items."""
    items: Sequence[Any] = getattr(value, name)
    if len(items) <= _ITEMS_AT_ONCE:
        return Json(value)
    fields = {field: getattr(value, field) for field in value.__struct_fields__}
    names = list(fields)
    at = names.index(name)
    before, after = ({field: fields[field] for field in part} for part in (names[:at], names[at + 1 :]))
    parts = [to_json(before)[:-1], b"," if before else b"", to_json(name), b":["]
    for first in range(0, len(items), _ITEMS_AT_ONCE):
        parts += [b"," if first else b"", to_json(items[first : first + _ITEMS_AT_ONCE])[1:-1]]
        await asyncio.sleep(0)
    return _InParts([*parts, b"]", b"," if after else b"", to_json(after)[1:]], list(items))


class _InParts(Json[Any]):
    """JSON of a known length, sent in parts: it may have many megabytes. `made_of` is the list of items that it shows.
    The request has ended when this is sent, so this list holds the last references; they are dropped in batches between
    other tasks: dropping 100,000 at once takes 80 ms."""

    def __init__(self, parts: list[bytes], made_of: list[Any]) -> None:
        headers = {"Cache-Control": "no-store", "Content-Length": str(sum(map(len, parts)))}
        Response.__init__(self, None, headers=headers, media_type="application/json")
        self._parts = parts
        self._made_of = made_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while self._made_of:
            del self._made_of[-_ITEMS_AT_ONCE:]
            await asyncio.sleep(0)
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def block_response(answer: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    """`answer` is {status, headers, body}; `headers` are added and win."""
    own = _headers(answer.get("headers"))
    status = answer.get("status", 200)
    status = status if isinstance(status, int) and 200 <= status <= 599 else 200
    if not 300 <= status <= 399:
        own.pop("location", None)
    body = answer.get("body")
    if isinstance(body, str):
        content, media = body.encode("utf-8", "replace"), "text/plain; charset=utf-8"
    else:
        content, media = to_json(body), "application/json"
    if status in _BODYLESS:
        content = b""
    media = own.pop("content-type", media)
    ours = {"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "no-store"}
    return Response(content, status, {**own, **ours, **headers}, media_type=media)


def _headers(written: Any) -> dict[str, str]:
    """Return the well-formed headers that a workflow may set, names in lower case."""
    if not isinstance(written, Mapping):
        return {}
    safe: dict[str, str] = {}
    for name, value in written.items():
        text = value if isinstance(value, str) else str(value)
        low = str(name).lower()
        if _TOKEN.fullmatch(low) and _VALUE.fullmatch(text) and _is_allowed(low):
            safe[low] = text
    return safe


def _is_allowed(name: str) -> bool:
    return name in _ALLOWED or (name.startswith("x-") and not _FORBIDDEN.match(name))

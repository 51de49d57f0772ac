"""A stored file as a response: always a download, never a page of this server.

Users upload any content, so the response is an attachment, its type is one of a few that no browser acts upon, and it
has no origin (CSP sandbox)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from executor.kernel.store.topics.contents import FileHead
from executor.kernel.values.file import ANY_MEDIA
from executor.kernel.values.files import Files
from server.http.errors import problem

# What is not here is sent as ANY_MEDIA. None of these runs scripts.
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

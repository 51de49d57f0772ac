"""The values that a page with a form posts: texts by the names of its inputs, with or without files."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from server.http.body import decode_form, read_bytes, stream_of
from server.http.call import Call
from server.http.multipart import boundary_of, read_form_with_files

FORM_MEDIA: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


async def posted(call: Call, files: Collection[str]) -> dict[str, str]:
    """The last text of each input; of the inputs `files`, which take files, the JSON of the stored file. Raises
    BodyInvalid, BodyTooLarge, LimitExceeded (file_too_large)."""
    boundary = boundary_of(call.request.headers.get("content-type", ""))
    if boundary is None:
        return decode_form(await read_bytes(call.request, call.limits))
    body = stream_of(call.request, call.limits.body_s)
    uploader = call.path("token")  # what came with the form may be in what is sent by it
    return await read_form_with_files(
        body, boundary, call.engine.parts.files, files, call.limits.request_bytes, uploader=uploader
    )

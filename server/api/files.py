"""Files: uploaded before a run that they are for, and downloaded with the role that sees runs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response

from executor.kernel.values.files import File
from server.http.request import stream_of
from server.http.response import Json, download
from server.http.security import UPLOAD_MEDIA
from server.http.table import Call, Param, Routes, RouteSpec

NAME_SENT_MAX = 1_000
FileName = Annotated[str, Meta(max_length=NAME_SENT_MAX)]
MediaType = Annotated[str, Meta(max_length=255)]


class UploadQuery(Struct, frozen=True):
    """`name` of the file; folders in it are left out. `media_type` of the content; by default that of the name's
    suffix."""

    name: FileName = ""
    media_type: MediaType = ""


class FileValue(Struct, frozen=True):
    """A file as inputs, answers and outputs name it. In requests only `type` and `id` count. `proof`: proof that a
    token for some workflows has uploaded the file."""

    type: Literal["file"]
    id: str
    name: str
    media_type: str
    size: int
    proof: str | UnsetType = UNSET


def file_value(file: File, proof: str | UnsetType = UNSET) -> FileValue:
    return FileValue("file", file.id, file.name, file.media_type, file.size, proof)


route = Routes("files", RouteSpec)


@route("POST", "/api/files", "Upload a file", needs="approver", status=201, takes=UPLOAD_MEDIA)
async def upload(call: Call, query: UploadQuery) -> Json[FileValue]:
    """Store the body as a file. The result is the value that inputs, answers and signals name the file by. A file that
    no run has in its input, an answer or an output is deleted, an hour after its last use at the earliest. `proof`: for
    a token that is for some workflows, which may use the file only with it until a run of them has the file."""
    files, who = call.engine.parts.files, call.who
    file = await files.save(stream_of(call.request, call.limits.body_s), query.name, query.media_type or None)
    call.record(f"{file.name}, {file.size} bytes")
    proof = UNSET if who.reach is None else files.proof(file.id, who.actor)
    return Json(file_value(file, proof), 201, {"Location": f"/api/files/{file.id}"})


@route(
    "GET",
    "/api/files/{id}",
    "Download a file",
    needs="viewer",
    statuses=(206, 304, 416),
    params=(Param("Range", "One range of bytes, such as bytes=0-99"),),
    media=("*/*",),
)
async def read(call: Call, id: str) -> Response:
    """The bytes of the file, to be saved. One range of bytes can be asked for."""
    headers = call.request.headers
    files = call.engine.parts.files
    return download(files, id, await files.head(id), headers.get("range"), headers.get("if-none-match"))

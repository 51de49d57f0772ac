"""Files: uploaded before a run that they are for, and downloaded with the role that sees runs."""

from __future__ import annotations

from msgspec import UNSET
from starlette.responses import Response

from server.http.body import stream_of
from server.http.call import Call
from server.http.downloads import download
from server.http.response import json_response
from server.http.security import UPLOAD_MEDIA
from server.http.table import Param, RouteSpec
from server.wire.files import FileValue, UploadQuery, file_value


async def upload(call: Call) -> Response:
    """Store the body as a file. The result is the value that inputs, answers and signals name the file by. A file that
    no run has in its input, an answer or an output is deleted, an hour after its last use at the earliest. `proof`: for
    a token that is for some workflows, which may use the file only with it until a run of them has the file."""
    query, files, who = call.query(UploadQuery), call.engine.parts.files, call.who
    file = await files.save(stream_of(call.request, call.limits.body_s), query.name, query.media_type or None)
    call.note(f"{file.name}, {file.size} bytes")
    proof = UNSET if who.reach is None else files.proof(file.id, who.actor)
    return json_response(file_value(file, proof), 201, {"Location": f"/api/files/{file.id}"})


async def read(call: Call) -> Response:
    """The bytes of the file, to be saved. One range of bytes can be asked for."""
    id, headers = call.path("id"), call.request.headers
    files = call.engine.parts.files
    return download(files, id, await files.head(id), headers.get("range"), headers.get("if-none-match"))


TABLE = (
    RouteSpec(
        "POST",
        "/api/files",
        upload,
        "Upload a file",
        "files",
        needs="approver",
        answer=FileValue,
        query=UploadQuery,
        status=201,
        takes=UPLOAD_MEDIA,
    ),
    RouteSpec(
        "GET",
        "/api/files/{id}",
        read,
        "Download a file",
        "files",
        needs="viewer",
        statuses=(206, 304, 404, 416),
        params=(Param("Range", "One range of bytes, such as bytes=0-99"),),
        media=("*/*",),
    ),
)

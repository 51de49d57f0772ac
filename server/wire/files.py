"""The shapes of files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from executor.kernel.values.file import File

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

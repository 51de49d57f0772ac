"""Files that are given to a language model: images, PDF and text. The type is found from the content, not from its
label.

A message names files by their ids, so a step compares ids, and the bytes are read again for each call of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from executor.blocks.llm.base import Content, LoadFiles, Message
from executor.blocks.types.file_contents import decoded
from executor.blocks.types.params import invalid, param
from executor.errors import BlockError
from executor.kernel.handler.base import Context
from executor.kernel.values.file import is_file
from executor.kernel.values.files import NOT_A_FILE_HINT

FILES_MAX: Final = 20  # for one call of a model
BYTES_MAX: Final = 10 * 1024 * 1024  # for all files together
_MARKS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


FILES: Final[Any] = param(
    "Files",
    "A file, or a list of files, that the model sees: images, PDF and text, 10 MiB in total.",
    order=-0.5,
    widget="reference",
)


def file_ids(value: Any, name: str = "files") -> tuple[str, ...]:
    """Return the ids of a param that has a file or a list of them, each once. Raises BlockError(params_invalid)."""
    listed = [] if value is None or value == "" else value if isinstance(value, list) else [value]
    for each in listed:
        if not is_file(each):
            raise invalid(f"{name} must be files", NOT_A_FILE_HINT)
    return tuple(dict.fromkeys(each["id"] for each in listed))


def with_files(messages: Sequence[Message], files: Any) -> list[Message]:
    """Add these files to the last message of the user. Raises BlockError(params_invalid)."""
    ids, found = file_ids(files), list(messages)
    if ids:
        at = max(at for at, message in enumerate(found) if message.role == "user")
        found[at] = replace(found[at], files=tuple(dict.fromkeys((*found[at].files, *ids))))
    return found


def loader(ctx: Context, messages: Sequence[Message]) -> LoadFiles | None:
    """Return a function that reads the files of these messages, or None if they have none. It raises BlockError:
    file_type_refused, file_too_large, file_not_found. Raises BlockError(params_invalid)."""
    ids = list(dict.fromkeys(id for message in messages for id in message.files))
    if not ids:
        return None
    if len(ids) > FILES_MAX:
        raise invalid(f"a model can be shown {FILES_MAX} files, these are {len(ids)}")

    async def load() -> Mapping[str, Content]:
        found: dict[str, Content] = {}
        left = BYTES_MAX
        for id in ids:
            value = {"type": "file", "id": id}
            head = await ctx.files.find(value)
            data = await ctx.files.read(value, left)
            left -= len(data)
            found[id] = content_of(head.name, data)
        return found

    return load


def content_of(name: str, data: bytes) -> Content:
    """Raises BlockError(file_type_refused)."""
    kind = next((kind for mark, kind in _MARKS if data.startswith(mark)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is not None:
        return Content(name, kind, data)
    try:
        text = decoded(data, {"name": name})
    except BlockError:
        text = "\0"
    if "\0" in text:
        raise BlockError(
            f"the file {name!r} cannot be shown to a model",
            code="file_type_refused",
            retryable=False,
            hint="Models take images (PNG, JPEG, GIF, WebP), PDF, and text in UTF-8.",
        )
    return Content(name, "text/plain", text.encode("utf-8", "replace"))

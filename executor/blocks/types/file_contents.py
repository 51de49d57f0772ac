"""Files in the params of blocks: as text for code, as the body of a request, as parts of a form, as attachments."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from executor.blocks.sandbox import MIB
from executor.blocks.types.params import invalid
from executor.errors import BlockError
from executor.kernel.handler.base import StepContext
from executor.kernel.values.files import NOT_A_FILE_HINT, File, files_of, is_file
from executor.kernel.values.payload import Bound, copy, render

CODE_BYTES_MAX: Final = 8 * MIB  # for the files of one program together
SENT_BYTES_MAX: Final = 20 * MIB  # for the files of one mail or form together
As = Literal["value", "text", "base64"]


async def with_contents(ctx: StepContext, code: Bound, how: As) -> Bound:
    """Return the program, with the content of the files in its references as `text` or `base64` of each. Raises
    BlockError."""
    if how == "value":
        return code
    values: dict[str, Any] = copy(dict(code.values))
    left = CODE_BYTES_MAX
    for _, each in files_of(values):
        content = await ctx.files.read(each, left)
        left -= len(content)
        each[how] = decoded(content, each) if how == "text" else base64.b64encode(content).decode()
    return Bound(code.source, values, code.texts)


def decoded(content: bytes, file: Mapping[str, Any]) -> str:
    """Decode a text file. Raises BlockError if it is not text in UTF-8, or in UTF-16 with a byte order mark."""
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        name = str(file.get("name"))[:200]
        raise BlockError(
            f"the file {name!r} is not text in UTF-8",
            code="file_not_text",
            retryable=False,
            hint="Save it as UTF-8, or have files as base64.",
        ) from None


async def attachments(ctx: StepContext, value: Any, name: str) -> list[tuple[File, bytes]]:
    """Return the files in a param that has one or a list. Raises BlockError."""
    listed = [] if value is None or value == "" else value if isinstance(value, list) else [value]
    found = []
    left = SENT_BYTES_MAX
    for each in listed:
        if not is_file(each):
            raise invalid(f"{name} must be files", NOT_A_FILE_HINT)
        content = await ctx.files.read(each, left)
        left -= len(content)
        found.append((await ctx.files.find(each), content))
    return found


async def multipart(ctx: StepContext, body: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the body of a form with its files, and its media type. The same body has the same bytes in each attempt.
    Raises BlockError."""
    boundary = f"weft-{hashlib.sha256(ctx.idempotency_key.encode()).hexdigest()[:40]}"
    parts: list[bytes] = []
    left = SENT_BYTES_MAX
    for field, value in body.items():
        for item in value if isinstance(value, list) and any(is_file(each) for each in value) else [value]:
            if item is None:
                continue
            head = f'Content-Disposition: form-data; name="{_quoted(field)}"'
            if is_file(item):
                content = await ctx.files.read(item, left)
                left -= len(content)
                file = await ctx.files.find(item)
                head += f'; filename="{_quoted(file.name)}"\r\nContent-Type: {file.media_type}'
            else:
                content = render(item).encode("utf-8", "replace")
            if boundary.encode() in content:
                raise invalid(f"the field {field[:80]!r} holds the boundary of the form")
            parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _quoted(text: str) -> str:
    """Quote a name as browsers do."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")

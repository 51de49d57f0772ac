"""Bodies of forms with files (multipart/form-data): parsed while they arrive, the files written straight into the
store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from email.errors import MessageError
from email.parser import HeaderParser
from typing import Final

import orjson

from executor.blocks.http.parts import are_too_many, header_of
from executor.kernel.values.files import Files
from server.http.errors import BodyInvalid, BodyTooLarge
from server.http.request import FORM_FIELDS_MAX, FORM_HINT, decode_form, read_bytes, stream_of
from server.http.table import Call

FORM_MEDIA: Final = "multipart/form-data"
FILES_MAX: Final = 20
HEAD_BYTES_MAX: Final = 8 * 1024
BOUNDARY_MAX: Final = 70  # characters, by RFC 2046


def boundary_of(content_type: str) -> bytes | None:
    """Return the boundary of a multipart form, or None if the body is not one. Raises BodyInvalid."""
    if content_type.partition(";")[0].strip().lower() != FORM_MEDIA:
        return None
    boundary = header_of("Content-Type", content_type).get_boundary()
    if not boundary or len(boundary) > BOUNDARY_MAX or not boundary.isascii():
        raise BodyInvalid("The form has no boundary.", pointer="", hint=FORM_HINT)
    return boundary.encode()


async def read_form_with_files(
    body: AsyncIterator[bytes],
    boundary: bytes,
    files: Files,
    fields: Collection[str],
    text_bytes_max: int,
    *,
    uploader: str,
) -> dict[str, str]:
    """Names and texts of the inputs; of `fields`, which take files, the JSON of the stored file, with the proof that
    `uploader` has stored it. Other files are passed over. Raises BodyInvalid, BodyTooLarge, LimitExceeded."""
    found: dict[str, str] = {}
    reader = _Reader(body, boundary, files.bytes_max + text_bytes_max)
    text_left, stored, count = text_bytes_max, 0, 0
    async for name, filename, media_type in reader.parts():
        count += 1
        if count > FORM_FIELDS_MAX:
            raise BodyInvalid("The form has too many fields.", pointer="", hint=FORM_HINT)
        if filename:
            if name not in fields:
                continue
            stored += 1
            if stored > FILES_MAX:
                raise BodyInvalid(f"The form has more than {FILES_MAX} files.", pointer="", hint=FORM_HINT)
            saved = await files.save(reader.content(), filename, media_type)
            found[name] = orjson.dumps({**saved.value, "proof": files.proof(saved.id, uploader)}).decode()
        elif filename is None:
            text = bytearray()
            async for piece in reader.content():
                text += piece
                if len(text) > text_left:
                    raise BodyTooLarge(f"The texts of the form are larger than {text_bytes_max} bytes.", hint=FORM_HINT)
            text_left -= len(text)
            try:
                found[name] = text.decode()
            except UnicodeDecodeError as error:
                raise BodyInvalid(f"The form cannot be read: {error}", pointer="", hint=FORM_HINT) from None
    return found


class _Reader:
    """The parts of one body. The content of a part is read or skipped before the next part."""

    def __init__(self, body: AsyncIterator[bytes], boundary: bytes, bytes_max: int) -> None:
        self._body = body
        self._mark = b"\r\n--" + boundary
        self._buffer = bytearray(b"\r\n")  # the first boundary may stand at the very beginning
        self._left = bytes_max
        self._bytes_max = bytes_max
        self._inside = False

    async def parts(self) -> AsyncIterator[tuple[str, str | None, str | None]]:
        """Yield the name, file name and media type of each part. The file name is None for a field without a file and
        '' if no file was chosen."""
        async for _ in self._until(self._mark):
            pass  # what stands before the first part has no meaning
        while True:
            while len(self._buffer) < 2:
                await self._fill()
            if self._buffer.startswith(b"--"):
                return
            head = bytearray()
            async for piece in self._until(b"\r\n\r\n"):
                head += piece
                if len(head) > HEAD_BYTES_MAX:
                    raise _unreadable("the head of a part is too long")
            self._inside = True
            yield _described(bytes(head))
            async for _ in self.content():
                pass
            await asyncio.sleep(0)  # a thousand parts that came together take 50 ms

    async def content(self) -> AsyncIterator[bytes]:
        if self._inside:
            async for piece in self._until(self._mark):
                yield piece
            self._inside = False

    async def _until(self, mark: bytes) -> AsyncIterator[bytes]:
        """The bytes before `mark`, which is taken away."""
        reach = len(mark) - 1
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > reach:
                piece = bytes(self._buffer[: len(self._buffer) - reach])
                del self._buffer[: len(piece)]
                yield piece
            await self._fill()
        piece = bytes(self._buffer[:at])
        del self._buffer[: at + len(mark)]
        if piece:
            yield piece

    async def _fill(self) -> None:
        try:
            chunk = await anext(self._body)
        except StopAsyncIteration:
            raise _unreadable("it ends too early") from None
        self._left -= len(chunk)
        if self._left < 0:
            raise BodyTooLarge(f"The body is larger than {self._bytes_max} bytes.", hint=FORM_HINT)
        self._buffer += chunk


def _described(head: bytes) -> tuple[str, str | None, str | None]:
    text = head.decode("utf-8", "replace").removeprefix("\r\n")
    if are_too_many(text):
        raise _unreadable("the head of a part has too many parameters")
    try:
        message = HeaderParser().parsestr(text)
        name = message.get_param("name", header="content-disposition")
        filename = message.get_filename()
    except (MessageError, ValueError, IndexError):
        raise _unreadable("the head of a part is not valid") from None
    if not isinstance(name, str):
        raise _unreadable("a part has no name")
    has_file = message.get_param("filename", None, "content-disposition") is not None
    media = message.get_content_type() if "content-type" in message else None
    return name, (filename or "") if has_file or filename else None, media


def _unreadable(why: str) -> BodyInvalid:
    return BodyInvalid(f"The form cannot be read: {why}.", pointer="", hint=FORM_HINT)


FORM_MEDIAS: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


async def posted(call: Call, files: Collection[str], token: str) -> dict[str, str]:
    """Return the last text of each input. For inputs in `files` it is the JSON of the stored file, which the sender
    of this form (`token`) may use. Raises BodyInvalid, BodyTooLarge, LimitExceeded (file_too_large)."""
    boundary = boundary_of(call.request.headers.get("content-type", ""))
    if boundary is None:
        return decode_form(await read_bytes(call.request, call.limits))
    body = stream_of(call.request, call.limits.body_s)
    text_bytes_max, store = call.limits.request_bytes, call.engine.parts.files
    return await read_form_with_files(body, boundary, store, files, text_bytes_max, uploader=token)

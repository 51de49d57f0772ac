"""Files: stored part by part while they arrive, and read part by part. See decision 35 for their form in the store.

A file as a value is {"type": "file", "id", "name", "media_type", "size"}; blocks pass it on like any other. Its name is
a label and never a path: what people call their files is not used to find one.

A run holds the files of its input, of its answers and signals, those that its blocks make, and those that runs below it
return. An id that is only written somewhere is a text. So the only way in is `admit`, which checks that the sender of
an id may use that file.

A file that no run holds is deleted by upkeep like other contents that are not used, an hour after its last use at the
earliest; a file that a run holds is deleted after the last of these runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import mimetypes
import re
import unicodedata
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import msgspec
import orjson
from msgspec import Struct

from compiler.references import escape
from executor.errors import BadRequest, BlockError, FileNotYours, LimitExceeded, NotFound, StoreError
from executor.kernel.process.acting import Reach, present_reach
from executor.kernel.store.topics.contents import (
    FILES_MAX,
    PART_BYTES,
    FileHead,
    decode_head,
    files_in,
    key_of,
    names_files,
)
from executor.kernel.store.topics.store import Store

NAME_CHARS_MAX: Final = 200
UNNAMED: Final = "file"
ANY_MEDIA: Final = "application/octet-stream"
FORMAT: Final = "file"  # `format` of a JSON Schema
# The schema of the value: its fields, for references.
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "format": FORMAT,
    "properties": {
        "type": {"const": "file"},
        "id": {"type": "string"},
        "name": {"type": "string"},
        "media_type": {"type": "string"},
        "size": {"type": "integer"},
    },
}
_ID = re.compile(r"file_[0-9a-f]{64}")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,99}/[a-z0-9][a-z0-9!#$&^_.+-]{0,99}")
_KNOWN = mimetypes.MimeTypes()  # what Python knows, and nothing of this machine
for _suffix, _type in {
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".tsv": "text/tab-separated-values",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
}.items():
    _KNOWN.add_type(_type, _suffix)


class File(Struct, frozen=True):
    id: str
    name: str
    media_type: str
    size: int

    @property
    def value(self) -> dict[str, Any]:
        return {"type": "file", "id": self.id, "name": self.name, "media_type": self.media_type, "size": self.size}


def file_of(id: str, head: FileHead) -> File:
    return File(id, head.name, head.media_type, head.size)


def is_file_id(text: Any) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def is_file(value: Any) -> bool:
    """Does the value name a file? There may be no such file."""
    return isinstance(value, Mapping) and value.get("type") == "file" and is_file_id(value.get("id"))


def files_of(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """JSON pointer and value of each file in it, in order."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        pointer, item = stack.pop()
        if isinstance(item, dict):
            if is_file(item):
                yield pointer, item
                continue
            inner = [(f"{pointer}/{escape(key)}", below) for key, below in item.items()]
        elif isinstance(item, list):
            inner = [(f"{pointer}/{n}", below) for n, below in enumerate(item)]
        else:
            continue
        stack.extend(reversed(inner))


def clean_name(name: str) -> str:
    """Return the last part of a path, shortened, without what cannot be seen and what steers a terminal or a header."""
    text = unicodedata.normalize("NFC", re.split(r"[/\\]", name)[-1])
    text = "".join(char for char in text if unicodedata.category(char) not in _UNSEEN)
    text = text.strip(" .") if text.strip(" .") == "" else text.strip()
    if len(text) > NAME_CHARS_MAX:
        stem, dot, suffix = text.rpartition(".")
        end = dot + suffix if dot and len(suffix) <= 10 else ""
        text = (stem if end else text)[: NAME_CHARS_MAX - len(end)] + end
    return text or UNNAMED


_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean_media_type(media_type: str | None, name: str) -> str:
    """Return the media type without parameters; if there is none, or a general one, by the suffix of the name."""
    text = (media_type or "").partition(";")[0].strip().lower()
    if _MEDIA_TYPE.fullmatch(text) and text != ANY_MEDIA:
        return text
    return _KNOWN.guess_type(f"x/{name}")[0] or ANY_MEDIA


MEBIBYTE: Final = 1024 * 1024
BYTES_MAX: Final = 100 * MEBIBYTE  # for a file, without a setting
READ_BYTES_MAX: Final = 16 * MEBIBYTE  # for a file that a block reads into memory at once
UPLOAD_HINT: Final = "Upload the file with POST /api/files, and use what that returns. Unused uploads are deleted."


class Admitted(NamedTuple):
    value: Any
    files: tuple[str, ...] = ()


class Files:
    """The files of one process. `key` signs who has stored a file; signatures by `old_keys` are valid as well."""

    def __init__(
        self,
        store: Store,
        now_ms: Callable[[], int],
        key: bytes,
        bytes_max: int = BYTES_MAX,
        redact: Callable[[str], str] = lambda text: text,
        old_keys: Sequence[bytes] = (),
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._key = key
        self._old_keys = old_keys
        self.redact = redact
        self.bytes_max = bytes_max

    async def save(
        self,
        content: AsyncIterable[bytes],
        name: str,
        media_type: str | None = None,
        *,
        run: str | None = None,
        bytes_max: int | None = None,
    ) -> File:
        """Store a file; with a run, it holds the file. Raises LimitExceeded, NotFound: the run was deleted."""
        bytes_max = self.bytes_max if bytes_max is None else min(bytes_max, self.bytes_max)
        whole, size = hashlib.sha256(), 0
        parts: list[str] = []
        buffer = bytearray()
        async for chunk in content:
            size += len(chunk)
            if size > bytes_max:
                raise too_large(bytes_max)
            buffer += chunk
            while len(buffer) >= PART_BYTES:
                part = bytes(memoryview(buffer)[:PART_BYTES])
                del buffer[:PART_BYTES]
                parts.append(await self._put(part, run, whole))
        if buffer:
            parts.append(await self._put(bytes(buffer), run, whole))
        name = clean_name(name)
        head = FileHead(name, clean_media_type(media_type, name), size, whole.hexdigest(), tuple(parts))
        encoded = msgspec.json.encode(head)
        id = key_of("file", encoded)
        await self._put_rows([(id, encoded)], run)
        return file_of(id, head)

    async def head(self, id: str) -> FileHead:
        """Raises NotFound."""
        content = await self._store.get_blob(id) if is_file_id(id) else None
        if content is None:
            raise NotFound("There is no such file.", code="file_not_found", hint=UPLOAD_HINT)
        return decode_head(content)

    async def content(self, head: FileHead, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` to before `end`. Raises NotFound if the file was deleted meanwhile."""
        end = head.size if end is None else min(end, head.size)
        for n in range(start // PART_BYTES, -(-end // PART_BYTES)):
            part = await self._store.get_blob(head.parts[n])
            if part is None:
                raise NotFound("The file was deleted.", code="file_not_found")
            yield part[max(start - n * PART_BYTES, 0) : end - n * PART_BYTES]

    async def admit(self, value: Any, at: str = "", reach: Reach | None = None) -> Admitted:
        """Admit a value from outside: only the id of each file in it counts, the rest is what is stored. None of these
        files is deleted soon. `at`: the pointer of the value. Raises BadRequest, FileNotYours."""
        reach = reach or present_reach()
        if not isinstance(value, (dict, list)) or not value:
            return Admitted(value)
        try:
            encoded = orjson.dumps(value)
        except (TypeError, RecursionError):  # not JSON, which is reported where it is checked
            return Admitted(value)
        if not names_files(encoded):
            return Admitted(value)
        named = files_in(encoded)
        if len(named) >= FILES_MAX:
            raise BadRequest(f"More than {FILES_MAX - 1} files are named.", code="too_many_files", pointer=at)
        value = orjson.loads(encoded)
        given = list(files_of(value))
        if reach is not None:
            named = await self._within(reach, named, given, at)
        found = frozenset(await self._store.hold_files(named, None, self._now_ms()))
        for pointer, each in given:
            if each["id"] not in found:
                message = "There is no file with this id."
                raise BadRequest(message, code="file_not_found", pointer=f"{at}{pointer}/id", hint=UPLOAD_HINT)
            stored = file_of(each["id"], await self.head(each["id"])).value
            each.clear()
            each.update(stored)
        return Admitted(value, tuple(id for id in named if id in found))

    async def _within(
        self, reach: Reach, named: Sequence[str], given: Sequence[tuple[str, dict[str, Any]]], at: str
    ) -> list[str]:
        """Return the ids that may be used. Raises FileNotYours, even if there is no such file."""
        proved = {each["id"] for _, each in given if self._is_proved(each, reach.uploaders)}
        usable = [id for id in named if id in proved or await self._store.holds_file(id, reach.workflows)]
        for pointer, each in given:
            if each["id"] not in usable:
                raise FileNotYours(
                    "You may not use this file: it is in no run that you may see, and you did not upload it.",
                    pointer=f"{at}{pointer}/id",
                    hint="Upload it with POST /api/files, and send all that this returns, `proof` too.",
                )
        return usable

    def proof(self, id: str, uploader: str) -> str:
        """Return a proof that `uploader` has stored the file. It is the member `proof` of a file value."""
        return _proof(self._key, id, uploader)

    def _is_proved(self, value: Mapping[str, Any], uploaders: Sequence[str]) -> bool:
        sent = value.get("proof")
        if not isinstance(sent, str):
            return False
        id = value["id"]
        proofs = [_proof(key, id, uploader) for key in (self._key, *self._old_keys) for uploader in uploaders]
        return any(hmac.compare_digest(proof.encode(), sent.encode("utf-8", "surrogatepass")) for proof in proofs)

    async def of_run(self, run: str, encoded: bytes) -> list[str]:
        """Return the files that this JSON names and the run holds."""
        named = files_in(encoded)
        return await self._store.files_of_run(run, named) if named else []

    async def hold(self, run: str, ids: Sequence[str]) -> None:
        if ids:
            await self._store.hold_files(ids, run, self._now_ms())

    async def _put(self, part: bytes, run: str | None, whole: Any) -> str:
        key = await asyncio.to_thread(_hashed, part, whole) if len(part) > MEBIBYTE // 8 else _hashed(part, whole)
        await self._put_rows([(key, part)], run)
        return key

    async def _put_rows(self, rows: list[tuple[str, bytes]], run: str | None) -> None:
        if not await self._store.put_parts(rows, run, self._now_ms()):
            raise NotFound("The run was deleted.", code="run_not_found")


class FilesOfRun:
    """The files of a run for its blocks: `ctx.files`. All methods raise BlockError."""

    def __init__(self, files: Files, run: str) -> None:
        self._files = files
        self._run = run
        self.bytes_max = files.bytes_max
        self.redact = files.redact  # for content that is no text when it is stored

    async def save(
        self,
        content: AsyncIterable[bytes] | bytes,
        name: str,
        media_type: str | None = None,
        *,
        bytes_max: int | None = None,
    ) -> File:
        """Store a file for this run; a block outputs `File.value`. Secrets are removed from its name, and from bytes
        that are text, but not from content that comes in pieces."""
        name = self._files.redact(name)
        if isinstance(content, bytes):
            content = in_parts(await asyncio.to_thread(_without_secrets, content, self._files.redact))
        try:
            return await self._files.save(content, name, media_type, run=self._run, bytes_max=bytes_max)
        except LimitExceeded as error:
            raise BlockError(error.message, code=error.code, retryable=False, hint=error.hint) from error
        except (NotFound, StoreError) as error:
            raise BlockError(f"the file could not be stored: {error.message}", code="file_not_stored") from error

    async def find(self, value: Any) -> File:
        return file_of(value["id"], await self._head(value))

    async def read(self, value: Any, bytes_max: int = READ_BYTES_MAX) -> bytes:
        """Return the content of the file that a value names. Raises BlockError(file_too_large) if it has more bytes."""
        head = await self._head(value)
        if head.size > bytes_max:
            raise BlockError(
                f"the file {head.name!r} has {head.size:,} bytes; at most {bytes_max:,} can be read here",
                code="file_too_large",
                retryable=False,
            )
        return b"".join([part async for part in self._content(head)])

    async def stream(self, value: Any) -> tuple[File, AsyncIterator[bytes]]:
        """Return the file and its content part by part, for files of any size."""
        head = await self._head(value)
        return file_of(value["id"], head), self._content(head)

    async def _head(self, value: Any) -> FileHead:
        if not is_file(value):
            raise BlockError("this is not a file", code="not_a_file", retryable=False, hint=NOT_A_FILE_HINT)
        with _read_errors():
            if not await self._files.of_run(self._run, orjson.dumps(value["id"])):
                raise BlockError(
                    "this run has no such file", code="file_not_found", retryable=False, hint=FILES_OF_RUN_HINT
                )
            return await self._files.head(value["id"])

    async def _content(self, head: FileHead) -> AsyncIterator[bytes]:
        with _read_errors():
            async for part in self._files.content(head):
                yield part


@contextmanager
def _read_errors() -> Iterator[None]:
    try:
        yield
    except NotFound as error:
        raise BlockError("the file no longer exists", code="file_not_found", retryable=False) from error
    except StoreError as error:
        raise BlockError(f"the file could not be read: {error.message}", code="file_not_read") from error


NOT_A_FILE_HINT: Final = 'A file is an object with "type": "file" and an id: refer to all of it, <start.invoice>.'


FILES_OF_RUN_HINT: Final = (
    "A run has the files of its input, of answers and signals to it, and those that its blocks and child runs make. "
    "An id from anywhere else names none."
)


def _proof(key: bytes, id: str, uploader: str) -> str:
    return hmac.new(key, f"{uploader}\0{id}".encode(), hashlib.sha256).hexdigest()


def too_large(bytes_max: int) -> LimitExceeded:
    size = f"{bytes_max // MEBIBYTE} MiB" if bytes_max % MEBIBYTE == 0 else f"{bytes_max:,} bytes"
    return LimitExceeded(
        f"The file is larger than {size}.", code="file_too_large", hint="WEFT_FILE_MAX of the server is the bound."
    )


def _without_secrets(content: bytes, redact: Callable[[str], str]) -> bytes:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    clean = redact(text)
    return content if clean == text else clean.encode()


def _hashed(part: bytes, whole: Any) -> str:
    whole.update(part)
    return key_of("part", part)


async def in_parts(content: bytes) -> AsyncIterator[bytes]:
    """Yield what `save` takes."""
    for start in range(0, len(content), PART_BYTES):
        yield content[start : start + PART_BYTES]

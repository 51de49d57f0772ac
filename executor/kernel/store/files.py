"""Files in the table of blobs: what a file consists of, and how values name one.

A file is a row `file_` + SHA-256 of its bytes, which are the JSON of a FileHead; that names the rows `part_` + SHA-256
of their bytes, with the content in order. So the id of a file stands for its content, its name and its media type, and
equal parts of two files are stored once. A run holds a file, and all its parts, by rows of `blob_refs`.

A value names a file by a text that is nothing but its id. That gives a run no file: a run has those that it holds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct

PART_BYTES: Final = 1024 * 1024
FILES_MAX: Final = 1_000  # in one value
_MARK: Final = b'"file_'
_ID: Final = re.compile(rb'"(file_[0-9a-f]{64})"')


class FileHead(Struct, frozen=True):
    """The row stored under the id of a file. `sha256` is of the content. `parts` are their keys, in order; all but the
    last have PART_BYTES."""

    name: str
    media_type: str
    size: int
    sha256: str
    parts: tuple[str, ...] = ()


class FileStore(Protocol):
    async def put_parts(self, parts: Sequence[tuple[str, bytes]], run: str | None, now_ms: int) -> bool:
        """Store parts of a file, or its head, by key, once; storing one again is a use. With a run it holds them from
        now on. False, and nothing is written: the run does not exist."""

    async def hold_files(self, ids: Sequence[str], run: str | None, now_ms: int) -> list[str]:
        """Note a use of these files with their parts; with a run it holds them from now on. Returns those that there
        are: nothing of them is deleted before the time in rule 33 has passed again."""

    async def files_of_run(self, run_id: str, ids: Sequence[str]) -> list[str]:
        """Return those of these files that the run holds."""

    async def holds_file(self, id: str, workflows: Sequence[str]) -> bool:
        """Does a run of one of these workflows hold the file?"""


def key_of(kind: Literal["file", "part"], content: bytes) -> str:
    """Return the key of its row."""
    return f"{kind}_{hashlib.sha256(content).hexdigest()}"


def decode_head(content: bytes) -> FileHead:
    return msgspec.json.decode(content, type=FileHead)


def names_files(json: bytes) -> bool:
    """Check quickly; a True may be wrong."""
    return _MARK in json


def files_in(json: bytes) -> list[str]:
    """Return the ids of files that this value names, FILES_MAX at most. Its JSON has no blanks between a text and the
    next."""
    if _MARK not in json:
        return []
    return [id.decode() for id in dict.fromkeys(_ID.findall(json))][:FILES_MAX]

"""Reads the files of a folder for `event.file`. The operator permits folders (WEFT_FILE_FOLDERS); links are not
followed, so nothing outside them is read.

A file is an event once its size and time have stayed the same between two polls, and its path, time and size are its
id. Its content is stored when its run is made.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from executor.blocks.databases.databases import path_inside
from executor.blocks.services import services_of
from executor.blocks.types.params import FILLED, TypedParams, param, shape
from executor.blocks.types.polled import Before, Event, Found, Polling, digest
from executor.errors import BlockError, LimitExceeded
from executor.kernel.handler.base import StepContext
from executor.kernel.values.files import SCHEMA, Files, too_large

FILES_MAX: Final = 10_000  # in a folder; as many ids are known
POLL_FILES_MAX: Final = 100  # of one poll: they are read before its claim ends
POLL_BYTES_MAX: Final = 512 * 1024 * 1024
QUIET_MS: Final = 3_000  # two looks that are closer are one
PART_BYTES: Final = 1024 * 1024
HINT: Final = "the operator permits folders with WEFT_FILE_FOLDERS"

FILE: Final = shape(file=SCHEMA, name="string", path="string", size="integer", modified="integer")


class Params(TypedParams, literal=True):
    folder: str = param(
        "Folder", "On the server: one that the operator permits, or below it.", required=True, pattern=FILLED
    )
    pattern: str = param("Names", "Such as *.csv. Names that begin with a dot are left out.", default="*")
    below: bool = param("Also in folders below", default=False)


class _File(Struct, frozen=True):
    """`path` is relative to the folder; `root` is the folder."""

    root: Path
    path: str
    size: int
    mtime_ns: int
    inode: int

    @property
    def id(self) -> str:
        return f"{self.path}:{self.mtime_ns}:{self.size}"


async def poll(ctx: StepContext, before: Before) -> Found:
    """Return the files that are complete and those that were seen. `position` has when each unseen one was found."""
    params, services = Params(ctx.params), services_of(ctx)
    files = await asyncio.to_thread(_files, params, services.file_folders, services.own_database)
    assert services.files is not None, "the engine sets it"
    listed = [(Event(file.id, load=partial(_load, file, services.files)), file.size) for file in files]
    return complete(ctx, before, params.folder, listed)


def complete(ctx: StepContext, before: Before, folder: str, files: Sequence[tuple[Event, int]]) -> Found:
    """Return those of these files, each with the bytes that its event will read, that stayed the same. Raises
    BlockError(events_too_many)."""
    if len(files) > FILES_MAX:
        message = f"the folder {folder[:200]!r} has more than {FILES_MAX:,} files"
        raise BlockError(message, code="events_too_many", retryable=False, hint="move files away when they are done")
    found = before.position if isinstance(before.position, dict) else {}
    marks = before.first and (before.newest or not Polling(ctx.params).existing)
    events: list[Event] = []
    unseen: dict[str, int] = {}
    count = size = 0
    more = False
    for event, bytes_read in files:
        id = digest(event.id)
        if marks or event.id in before.seen:
            events.append(event)
            continue
        unseen[id] = found.get(id, ctx.now_ms)
        if ctx.now_ms - unseen[id] < QUIET_MS:
            continue
        more = more or count == POLL_FILES_MAX or (count > 0 and size + bytes_read > POLL_BYTES_MAX)
        if not more:
            events.append(event)
            count, size = count + 1, size + bytes_read
    return Found(events, unseen, more, again=True)


def _files(params: Params, permitted: Sequence[str], own: str | None) -> list[_File]:
    root = _permitted(params.folder, permitted)
    if own is not None and path_inside(str(root), os.path.abspath(own)):
        message = f"the folder {params.folder[:200]!r} has the database of weft itself"
        raise BlockError(message, code="folder_refused", retryable=False, hint=HINT)
    return sorted(_listed(root, params), key=lambda file: (file.mtime_ns, file.path))


def _permitted(folder: str, permitted: Sequence[str]) -> Path:
    if not permitted:
        raise BlockError("this server permits no folders", code="folder_refused", retryable=False, hint=HINT)
    found = [path for path in (path_inside(one, folder, root_too=True) for one in permitted) if path is not None]
    if not found:
        message = f"{folder[:200]!r} is in no folder that this server permits"
        raise BlockError(message, code="folder_refused", retryable=False, hint=HINT)
    path = next((path for path in found if path.is_dir()), None)
    if path is None:
        raise BlockError(f"there is no folder {folder[:200]!r}", code="folder_missing", retryable=True)
    return path


def _listed(root: Path, params: Params) -> Iterator[_File]:
    """Yield at most one file more than FILES_MAX. Raises BlockError if the folder cannot be read."""
    left, count = [""], 0
    while left:
        above = left.pop()
        try:
            with os.scandir(root / above) as entries:
                here = list(entries)
        except OSError as error:
            if not above:
                message = f"the folder cannot be read: {error.strerror}"
                raise BlockError(message, code="folder_missing", retryable=True) from error
            continue  # it was deleted meanwhile, or is not ours
        for entry in here:
            path = f"{above}/{entry.name}" if above else entry.name
            if entry.name.startswith("."):
                continue
            if params.below and entry.is_dir(follow_symlinks=False):
                left.append(path)
            elif fnmatchcase(entry.name, params.pattern) and (found := _stat(entry)) is not None:
                yield _File(root, path, found.st_size, found.st_mtime_ns, found.st_ino)
                count += 1
                if count > FILES_MAX:
                    return


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # it was deleted meanwhile
        return None
    return found if stat.S_ISREG(found.st_mode) else None


async def _load(file: _File, files: Files) -> Any:
    """Store the content, and return the data of the event. Raises BlockError: file_too_large, file_changed,
    file_unreadable."""
    try:
        if file.size > files.bytes_max:
            raise too_large(files.bytes_max)
        stored = await files.save(_content(file), files.redact(Path(file.path).name))
    except LimitExceeded as error:
        message = f"{file.path[:200]!r} has {file.size:,} bytes: {error.message}"
        raise BlockError(message, code=error.code, retryable=False, hint=error.hint) from error
    except OSError as error:
        message = f"{file.path[:200]!r} cannot be read: {error.strerror}"
        raise BlockError(message, code="file_unreadable", retryable=False) from error
    modified = file.mtime_ns // 1_000_000
    return {"file": stored.value, "name": stored.name, "path": file.path, "size": file.size, "modified": modified}


async def _content(file: _File) -> AsyncIterator[bytes]:
    """Yield the parts of the file that was listed, and of no other one in its place."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    opened = await asyncio.to_thread(os.open, file.root / file.path, flags)
    with os.fdopen(opened, "rb") as stream:
        _check_same(file, opened)
        while part := await asyncio.to_thread(stream.read, PART_BYTES):
            yield part
        _check_same(file, opened)


def _check_same(file: _File, opened: int) -> None:
    now = os.fstat(opened)
    if (now.st_ino, now.st_size, now.st_mtime_ns) != (file.inode, file.size, file.mtime_ns):
        message = f"{file.path[:200]!r} changed while it was read; it is another event once it stays the same"
        raise BlockError(message, code="file_changed", retryable=False)

"""What a disk may hold after the power went: images of the files for each point of a log of operations.

What was synced is there, as a whole. Of the rest of the operations (`pending`) some or none may be, in any choice, and
a write may have come through in pieces. Names and sizes are journalled with the next sync of any file, as on ext4 and
XFS; where they are not, a deleted file may return until its folder was synced.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tests.support.vfs import Entry, File, Op

Mode = Literal["dropped", "kept", "torn", "killed"]
POWER: tuple[Mode, ...] = ("dropped", "kept", "torn")  # nothing of what was not synced; half of it; half of its sectors
SECTOR = 512
FILES: tuple[File, ...] = ("", "-wal", "-journal")

Files = dict[File, bytes]


class Image(Struct, frozen=True):
    """The files when the power went before operation `index`, and how many of the client's lines there were then."""

    index: int
    mode: Mode
    returns: bool
    told: int
    files: Files

    def write(self, db: Path) -> None:
        for file in FILES:
            place = db.with_name(db.name + file)
            if file in self.files:
                place.write_bytes(self.files[file])
            else:
                place.unlink(missing_ok=True)

    def __str__(self) -> str:
        return f"{self.mode}{', deleted files return' if self.returns else ''}, before operation {self.index}"


class Disk:
    """`synced` is certain to be there. The database itself is made and synced before SQLite opens it."""

    def __init__(self) -> None:
        self.synced: dict[File, bytearray] = {"": bytearray()}
        self.pending: list[Op] = []
        self.ghosts: Files = {}  # deleted, but their folder was not synced

    def do(self, op: Op) -> None:
        match op.kind:
            case "sync":
                self._sync(op.file)
            case "delete" if op.lasting:
                self.pending = [other for other in self.pending if other.file != op.file]
                self.synced.pop(op.file, None)
                self.ghosts.pop(op.file, None)
            case _:
                self.pending.append(op)

    def _sync(self, file: File) -> None:
        """All writes of the file, and the names and sizes of all."""
        kept: list[Op] = []
        for op in self.pending:
            if op.file == file or op.kind != "write":
                if op.kind == "delete" and op.file in self.synced:
                    self.ghosts[op.file] = bytes(self.synced[op.file])
                # What had been written before behind the new end, or into the file that went, cannot come back.
                kept = [
                    other for other in kept if other.file != op.file or (op.kind == "truncate" and other.at < op.at)
                ]
                _apply(self.synced, op)
            else:
                kept.append(op)
        self.pending = kept
        self.ghosts.pop(file, None)  # the name is that of the new file now

    def everything(self) -> Files:
        """As a process finds it that comes after one which was killed."""
        files = {file: bytearray(data) for file, data in self.synced.items()}
        for op in self.pending:
            _apply(files, op)
        return {file: bytes(data) for file, data in files.items()}

    def after_loss(self, mode: Mode, choose: random.Random) -> Files:
        files = {file: bytearray(data) for file, data in self.synced.items()}
        for op in self.pending if mode != "dropped" else ():
            for piece in _pieces(op) if mode == "torn" else (op,):
                if choose.random() < 0.5:
                    _apply(files, piece)
        return {file: bytes(data) for file, data in files.items()}


def images(log: Sequence[Entry], choose: random.Random, every: int = 1) -> Iterator[Image]:
    """For each point of the log, or each `every`th: what a kill leaves behind, and a loss of power in each mode. Where
    a deleted file may return, the same again with it."""
    disk, index, told = Disk(), 0, 0
    for entry in [*log, None]:
        if entry is not None and entry.op is None:
            told += 1
            continue
        if index % every == 0:
            yield from _now(disk, index, told, choose)
        if entry is not None and entry.op is not None:
            disk.do(entry.op)
            index += 1


def _now(disk: Disk, index: int, told: int, choose: random.Random) -> Iterator[Image]:
    yield Image(index, "killed", False, told, disk.everything())
    for mode in POWER:
        files = disk.after_loss(mode, choose)
        yield Image(index, mode, False, told, files)
        if disk.ghosts:
            yield Image(index, mode, True, told, disk.ghosts | files if mode == "kept" else files | disk.ghosts)


def distinct(made: Iterator[Image]) -> Iterator[tuple[Image, int]]:
    """Images with the same files one after the other are one: the last, when most had been told. And how many."""
    held: dict[tuple[Mode, bool], tuple[Image, int]] = {}
    for image in made:
        kind = (image.mode, image.returns)
        before = held.get(kind)
        if before is None:
            held[kind] = (image, 1)
        elif before[0].files == image.files:
            held[kind] = (image, before[1] + 1)
        else:
            yield before
            held[kind] = (image, 1)
    yield from held.values()


def _pieces(op: Op) -> Iterator[Op]:
    """A write in its sectors; SQLite relies on the bytes beside a write staying as they are, in the same sector too."""
    if op.kind != "write":
        yield op
        return
    start, end = op.at, op.at + len(op.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield Op("write", op.file, start, op.data[start - op.at : stop - op.at])
        start = stop


def _apply(files: dict[File, bytearray], op: Op) -> None:
    match op.kind:
        case "delete":
            files.pop(op.file, None)
        case "truncate":
            data = files.setdefault(op.file, bytearray())
            del data[op.at :]
            data.extend(bytes(op.at - len(data)))
        case "write":
            data = files.setdefault(op.file, bytearray())
            data.extend(bytes(max(0, op.at - len(data))))
            data[op.at : op.at + len(op.data)] = op.data

"""Files in the table of blobs: what a file consists of, and how values name one.

A file is a row `file_` + SHA-256 of its bytes, which are the JSON of a FileHead; that names the rows `part_` + SHA-256
of their bytes, with the content in order. So the id of a file stands for its content, its name and its media type, and
equal parts of two files are stored once. A run holds a file, and all its parts, by rows of `blob_refs`.

A value names a file by a text that is nothing but its id. That gives a run no file: a run has those that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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

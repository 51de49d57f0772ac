"""A disk of its own for a server: a few MiB in memory, in a namespace of mounts that no other process sees. Needs no
root, where users may have namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

BLOCK = 4096


class NoDisk(Exception):
    """This machine lets users have no namespaces; the message says what it said."""


class SmallDisk:
    """`folder` is its place for who runs `within` it; `outside` is the same for everybody else."""

    def __init__(self, holder: int, folder: Path) -> None:
        self.folder = folder
        self.outside = Path(f"/proc/{holder}/root{folder}")
        self.within: Sequence[str] = (
            *("nsenter", "--target", str(holder), "--user", "--mount", "--preserve-credentials"),
            f"--wd={os.getcwd()}",
        )
        self._ballast = self.outside / "ballast"

    def free_bytes(self) -> int:
        found = os.statvfs(self.outside)
        return found.f_bavail * found.f_frsize

    def fill(self, leave_bytes: int = 0) -> None:
        """Another program takes what is free, but for so much."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):  # the server was faster: it is full
            while (room := self.free_bytes() - leave_bytes) >= BLOCK:
                file.write(bytes(room // BLOCK * BLOCK))

    def free(self) -> None:
        """It gives that back."""
        self._ballast.unlink()

    def copy(self, to: Path) -> None:
        """All files of the folder, to one that lasts."""
        shutil.copytree(self.outside, to)


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Raises NoDisk."""
    folder.mkdir()
    mount = f"mount -t tmpfs -o size={size_bytes},mode=700 tmpfs {folder} && echo mounted && exec sleep 3600"
    command = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount)
    try:
        holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError as error:
        raise NoDisk(str(error)) from error
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != "mounted\n":
            raise NoDisk(holder.communicate()[1].strip())
        yield SmallDisk(holder.pid, folder)
    finally:
        holder.kill()
        holder.communicate()

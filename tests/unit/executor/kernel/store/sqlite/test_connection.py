"""How a new file comes to be. What SQLite does with it is in tests/faults."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from executor.errors import DatabaseUnavailable
from executor.kernel.store.sqlite.store import SQLiteStore


async def test_a_new_file_whose_name_can_not_be_synced_is_an_error_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = SQLiteStore(tmp_path / "weft.db")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(DatabaseUnavailable, match=r"weft\.db cannot be created: Input/output error"):
            await store.open()
    await store.open()  # the disk is well again
    await store.close()

"""Only files inside the permitted folders are opened, whatever a path looks like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from executor.blocks.databases.databases import FILES_MAX, Folders
from executor.errors import BlockError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a file, beside another folder and weft's own database."""
    for name in ("open/sub", "closed"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("open/a.db", "open/sub/b.db", "closed/c.db", "weft.db"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "open" / "out.db").symlink_to(tmp_path / "closed" / "c.db")
    (tmp_path / "open" / "near.db").symlink_to("a.db")
    (tmp_path / "open" / "gone.db").symlink_to(tmp_path / "closed" / "new.db")
    os.link(tmp_path / "weft.db", tmp_path / "open" / "own.db")
    os.mkfifo(tmp_path / "open" / "pipe.db")
    return tmp_path


def folders(place: Path) -> Folders:
    return Folders([str(place / "open")], own=str(place / "weft.db"))


@pytest.mark.parametrize("name", ["a.db", "./a.db", "sub/b.db", "sub/../a.db", "near.db"])
def test_files_inside(place: Path, name: str) -> None:
    assert folders(place).find(name).is_relative_to(place / "open")
    assert folders(place).find(str(place / "open" / name)).is_file()


@pytest.mark.parametrize(
    "name",
    ["../closed/c.db", "out.db", "gone.db", "own.db", "pipe.db", "sub", ".", "", "/etc/passwd", "a\x00.db", "a\n.db",
     "sub/../../closed/c.db", ":memory:/../../closed/c.db"],
)  # fmt: skip
def test_everything_else_is_refused(place: Path, name: str) -> None:
    for create in (False, True):
        with pytest.raises(BlockError) as caught:
            folders(place).find(name, create=create)
        assert caught.value.code == "sql_refused"
        assert "WEFT_SQLITE_FOLDERS" in caught.value.hint
    assert not (place / "closed" / "new.db").exists()


def test_without_folders_there_are_no_files(place: Path) -> None:
    with pytest.raises(BlockError, match="permits no SQLite files"):
        Folders().find(str(place / "open" / "a.db"))


def test_a_new_file_has_an_ending_of_databases(place: Path) -> None:
    with pytest.raises(BlockError, match="there is no SQLite file"):
        folders(place).find("new.db")
    assert folders(place).find("more/new.db", create=True) == place / "open" / "more" / "new.db"
    with pytest.raises(BlockError, match="must end with"):
        folders(place).find("new.html", create=True)


def test_a_folder_has_a_bound(tmp_path: Path) -> None:
    for n in range(FILES_MAX):
        (tmp_path / f"{n}.db").touch()
    with pytest.raises(BlockError, match="1000 files"):
        Folders([str(tmp_path)]).find("new.db", create=True)
    assert Folders([str(tmp_path)]).find("7.db")


@pytest.mark.parametrize("name", ["weft.db-wal", "weft.db-shm", "weft.db-journal", "weft.db.lock", "log.db"])
def test_the_log_of_weft_is_no_database(tmp_path: Path, name: str) -> None:
    """SQLite takes an empty file for a new database, and would write its first page into the log."""
    for own in ("weft.db", "weft.db-wal", "weft.db-shm", "weft.db.lock"):
        (tmp_path / own).write_bytes(b"")
    (tmp_path / "log.db").symlink_to("weft.db-wal")
    for create in (False, True):
        with pytest.raises(BlockError, match="weft itself"):
            Folders([str(tmp_path)], own=str(tmp_path / "weft.db")).find(name, create=create)

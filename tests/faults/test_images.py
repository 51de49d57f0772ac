"""What `images` takes a disk to hold."""

from __future__ import annotations

import random

import pytest

from tests.faults.images import Disk, Files, distinct, images
from tests.support.vfs import Entry, Op


def disk(*ops: Op) -> Disk:
    made = Disk()
    for op in ops:
        made.do(op)
    return made


def losses(made: Disk, mode: str) -> list[Files]:
    """Those that come up in many tries."""
    found: list[Files] = []
    choose = random.Random(1)
    for _ in range(200):
        files = made.after_loss(mode, choose)  # type: ignore[arg-type]
        if files not in found:
            found.append(files)
    return found


WRITE_1 = Op("write", "", 0, b"a" * 600)
WRITE_2 = Op("write", "", 600, b"b" * 424)


def test_what_was_synced_is_there_and_the_rest_may_be() -> None:
    made = disk(WRITE_1, Op("sync", ""), WRITE_2)
    whole, half = b"a" * 600 + b"b" * 424, b"a" * 600
    assert made.everything() == {"": whole}
    assert losses(made, "dropped") == [{"": half}]
    assert {files[""] for files in losses(made, "kept")} == {whole, half}


def test_a_write_may_come_through_in_sectors() -> None:
    made = disk(Op("write", "", 0, bytes(1024)), Op("sync", ""), Op("write", "", 500, b"x" * 100))
    changed = {tuple(i for i, byte in enumerate(files[""]) if byte) for files in losses(made, "torn")}
    assert changed == {(), tuple(range(500, 512)), tuple(range(512, 600)), tuple(range(500, 600))}


def test_a_sync_of_one_file_leaves_the_data_of_another_unsynced_but_keeps_its_size() -> None:
    made = disk(WRITE_1, Op("sync", ""), Op("write", "-wal", 0, b"w"), Op("truncate", "", 10), Op("sync", "-wal"))
    assert losses(made, "kept") == [{"": b"a" * 10, "-wal": b"w"}]
    made = disk(Op("write", "-wal", 0, b"w"), WRITE_1, Op("sync", ""))
    assert {frozenset(files) for files in losses(made, "kept")} == {frozenset([""]), frozenset(["", "-wal"])}


@pytest.mark.parametrize("lasting", [False, True])
def test_a_deleted_file_may_return_until_its_folder_was_synced(lasting: bool) -> None:
    made = disk(
        Op("write", "-journal", 0, b"j"),
        Op("sync", "-journal"),
        Op("delete", "-journal", lasting=lasting),
        Op("sync", ""),
    )
    assert made.everything() == {"": b""}
    assert losses(made, "kept") == [{"": b""}]
    assert made.ghosts == ({} if lasting else {"-journal": b"j"})
    made.do(Op("write", "-journal", 0, b"new"))
    made.do(Op("sync", "-journal"))
    assert made.ghosts == {}


def test_images_of_a_log_know_what_had_been_acknowledged() -> None:
    log = [Entry(WRITE_1), Entry(Op("sync", "")), Entry(told=b"1\n"), Entry(WRITE_2), Entry(told=b"2\n")]
    made = [image for image in images(log, random.Random(1)) if image.mode == "dropped"]
    assert [(image.index, image.told, len(image.files[""])) for image in made] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 1, 600),
        (3, 2, 600),
    ]
    assert [(image.told, times) for image, times in distinct(iter(made))] == [(0, 2), (2, 2)]


def test_a_kill_leaves_everything_that_was_written() -> None:
    made = [image for image in images([Entry(WRITE_1)], random.Random(1)) if image.mode == "killed"]
    assert [len(image.files[""]) for image in made] == [0, 600]

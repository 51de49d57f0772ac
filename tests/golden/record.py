"""Makes the databases of this folder with the code of the time. Needs a clone with its history.

    python -m tests.golden.record [SCHEMA ...]

Before a migration is added, give the schema it changes the last commit that has it, record it, and commit both files.
Ids are random, so a second recording differs in them; what is decided does not.
"""

from __future__ import annotations

import gzip
import io
import os
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Each the last of its schema that works: behind 8e2866b runs kept their leases while they waited. 3, 4 and 5 came to
# the main line together with 6, and 17 to 24 together with 25; broken.py has files of the former, and those of the
# latter were made while they were apart, so they cannot be made again.
COMMITS = {
    1: "07edec0",
    2: "8e2866b",
    6: "7483984",
    7: "5883d89",
    8: "f87eb3c",
    9: "2ea1bd6",
    12: "b8fbb10",
    14: "37ce10c",
    15: "3476026",
    16: "c87ccd9",
    25: "edfef2d",
    26: "4353c59",
    27: "91360b2",
}


def record(schema: int, commit: str) -> tuple[int, int]:
    """Sizes of the two files in bytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        code = folder / "code"
        archive = subprocess.run(
            ["git", "archive", commit, "compiler", "executor", "pyproject.toml"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(code, filter="data")
        _declare(code)
        arguments = [str(folder / "weft.db"), str(folder / "copy.db"), str(folder / "facts")]
        subprocess.run(
            [sys.executable, str(HERE / "play.py"), *arguments], env={**os.environ, "PYTHONPATH": str(code)}, check=True
        )
        with closing(sqlite3.connect(folder / "copy.db")) as db:
            (found,) = db.execute("PRAGMA user_version").fetchone()
            assert found == schema, f"commit {commit} has schema {found}, not {schema}"
            (application,) = db.execute("PRAGMA application_id").fetchone()
            lines = [*db.iterdump(), f"PRAGMA application_id = {application};", f"PRAGMA user_version = {found};"]
        return (
            _write(HERE / f"schema_{schema}.sql.gz", "\n".join(lines).encode()),
            _write(HERE / f"schema_{schema}.facts.gz", (folder / "facts").read_bytes()),
        )


def _declare(code: Path) -> None:
    """The block types of that commit instead of those that are installed: found first, for it is first on the path."""
    import tomllib

    project = tomllib.loads((code / "pyproject.toml").read_text())["project"]
    about = code / "weft-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weft\nVersion: 0\n")
    blocks = project["entry-points"]["weft.blocks"]
    (about / "entry_points.txt").write_text(
        "[weft.blocks]\n" + "".join(f"{name} = {place}\n" for name, place in blocks.items())
    )


def _write(path: Path, data: bytes) -> int:
    packed = gzip.compress(data, 9, mtime=0)
    path.write_bytes(packed)
    return len(packed)


def main() -> None:
    for schema in [int(arg) for arg in sys.argv[1:]] or COMMITS:
        sizes = record(schema, COMMITS[schema])
        print(f"schema {schema}: {sizes[0]} and {sizes[1]} bytes, by {COMMITS[schema]}")


if __name__ == "__main__":
    main()

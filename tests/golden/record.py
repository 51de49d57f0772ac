"""Makes a database of this folder with the code of a release. Needs a clone with its history.

    python -m tests.golden.record [COMMIT]

Each release is recorded once, at its tag, and so is the last commit before a migration is added. Ids are random, so a
second recording differs in them; what is decided does not.
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


def record(commit: str) -> tuple[int, int, int]:
    """Returns the schema of that commit, and the sizes of the two files in bytes."""
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
            (schema,) = db.execute("PRAGMA user_version").fetchone()
            (application,) = db.execute("PRAGMA application_id").fetchone()
            lines = [*db.iterdump(), f"PRAGMA application_id = {application};", f"PRAGMA user_version = {schema};"]
        return (
            schema,
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
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    print("schema {}: {} and {} bytes".format(*record(commit)))


if __name__ == "__main__":
    main()

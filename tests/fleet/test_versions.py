"""Two versions side by side on one database, in trouble: the one before the newest schema of PostgreSQL, taken from the
history of this checkout, and this one, which brings the schema up to date while the other works."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
SCHEMAS = "executor/kernel/store/sql/postgres"
OPTIONS = ("--runs", "120", "--seconds", "45", "--at-most", "90")


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A checkout of the commit before the newest schema file came."""
    newest = max(path.name for path in (ROOT / SCHEMAS).glob("*.sql"))
    try:
        added = git("log", "-1", "--diff-filter=A", "--format=%H", "--", f"{SCHEMAS}/{newest}").decode().strip()
        archive = git("archive", f"{added}^")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the history of this checkout does not have the version before {newest}: {error}")
    if not git("ls-tree", f"{added}^", f"{SCHEMAS}/"):
        pytest.skip(f"{newest} came together with PostgreSQL itself: no version before it had this database")
    folder = tmp_path / "older"
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    assert not (folder / SCHEMAS / newest).exists()
    return folder


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("alone with its processes")
async def test_the_version_before_works_beside_this_one(older: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fleet.monkey", "--older", str(older), "--keep", str(tmp_path / "logs")]
    process = await asyncio.create_subprocess_exec(
        *command, *OPTIONS, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    text = out.decode()
    print(text)
    assert process.returncode == 0 and text.endswith("\n0 wrong\n"), text

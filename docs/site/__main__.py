"""Builds the site of the documentation in build/docs/site: `make docs`.

The pages of docs/ are copied as they are, with some that stand elsewhere in the repository (OUTSIDE) and those that are
made from the code (`made.py`). Links between them work; a link to a file that is no page becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs.site import made

ROOT = Path(__file__).parents[2]
SETTINGS = Path(__file__).parent / "zensical.toml"
OUTSIDE = ("ARCHITECTURE.md", "CHANGELOG.md", "examples/README.md")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def main(folder: Path) -> int:
    """Exit code. `folder` is replaced; the site is in its `site`."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    for source, target in files().items():
        (pages / target).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            (pages / target).write_text(linked(source.read_text(), source))
        else:
            shutil.copyfile(source, pages / target)
    for name, text in made.pages().items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(text)
    decisions = sorted(f'"{name}"' for name in files().values() if name.startswith("decisions/0"))
    index = '"decisions/README.md"'
    settings = SETTINGS.read_text().replace(index, ", ".join([index, *decisions]))
    (folder / "zensical.toml").write_text(settings)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(folder / "zensical.toml")]
    return subprocess.run(command, check=False).returncode


def files() -> dict[Path, str]:
    """What is copied, with its path in the site: pages, pictures and the files that pages link to."""
    found = {ROOT / name: name for name in OUTSIDE}
    for path in sorted((ROOT / "docs").rglob("*")):
        name = path.relative_to(ROOT / "docs")
        if path.is_file() and name.parts[0] != "site" and path.suffix not in (".py", ".pyc"):
            found[path] = name.as_posix()
    found[ROOT / "server/static/favicon.svg"] = "favicon.svg"
    found[ROOT / "docs/site/site.css"] = "site.css"
    return found


def linked(text: str, source: Path) -> str:
    """`text` with its links to other files as they are in the site."""
    targets = files()
    here = posixpath.dirname(targets[source])

    def replaced(found: re.Match[str]) -> str:
        picture, label, link = found.groups()
        path, _, anchor = link.partition("#")
        if "://" in link or not path:
            return found[0]
        target = targets.get((source.parent / path).resolve())
        if target is None:
            return label
        return f"{picture}[{label}]({posixpath.relpath(target, here or '.')}{'#' + anchor if anchor else ''})"

    return _LINK.sub(replaced, text)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"))

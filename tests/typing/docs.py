"""`python -m tests.typing.docs`: mypy --strict of the Python on the pages for users; part of `make lint`.

A page becomes a package in `build/typing`, each of its files a module. Code without a name is a module of its own; if
it imports nothing, it continues the file before it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "typing"
SANDBOX = ROOT / "docs/reference/expressions.md"  # its Python has references in it
PAGES = sorted({ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")} - {SANDBOX})


def files_of(text: str) -> dict[str, str]:
    """Return the Python of a page, by the name of the file."""
    files: dict[str, str] = {}
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        named = re.match(r"# (\S+\.py)\n", code)
        if named is None and files and not re.search(r"^(?:import|from) ", code, re.MULTILINE):
            files[next(reversed(files))] += f"\n\n{code}"
        else:
            files[named[1].replace("/", "_") if named else f"unnamed_{len(files)}.py"] = code
    return files


def write(pages: Iterable[Path] = PAGES, folder: Path = FOLDER) -> list[Path]:
    """Write the files of the pages; they import each other in their package."""
    shutil.rmtree(folder, ignore_errors=True)
    written = []
    for page in pages:
        package = re.sub(r"\W", "_", "_".join(page.with_suffix("").parts[-3:]))
        files = files_of(page.read_text())
        for name, code in files.items():
            for other in (Path(one).stem for one in files):
                code = re.sub(rf"^from {other} import", f"from {package}.{other} import", code, flags=re.MULTILINE)
            path = folder / package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
            written.append(path)
    return written


def check(folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    """Run mypy on what `write` has written, with the settings and the cache of the repository."""
    command = [sys.executable, "-m", "mypy", "--strict", str(folder)]
    environ = {**os.environ, "MYPYPATH": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False)


if __name__ == "__main__":
    write()
    done = check()
    print(done.stdout, done.stderr, sep="", end="")
    raise SystemExit(done.returncode)

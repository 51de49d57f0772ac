"""The tests of what has changed, nearest first: `make quick`.

    python -m tests.quick [OPTIONS OF PYTEST]

Changed is what differs from the branch `main`, with files that git does not know yet. Tests of a changed module are the
file that has its name in `tests/unit`, and every test file that imports it, or imports a module that does. Those of
databases, servers and browsers are left to `make test`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import networkx as nx

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("compiler", "executor", "server", "weft")
SUITES: Final = ("unit", "words", "simulation")
FILES_MAX: Final = 60  # about a minute
# Parsing all of the code would take longer than most tests.
_IMPORT: Final = re.compile(r"^ *(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))", re.MULTILINE)


def changed() -> list[str]:
    """Paths relative to the checkout."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return [*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def tests_of(paths: list[str]) -> list[str]:
    """Test files, nearest first: themselves changed, then by the length of the way of imports to a changed module."""
    graph = imports()
    sources = {name for name in map(_module, paths) if name in graph}
    far = nx.multi_source_dijkstra_path_length(graph.reverse(), sources) if sources else {}
    mirrored = {f"tests/unit/{Path(path).parent}/test_{Path(path).stem}" for path in paths}
    found = {}
    for suite in SUITES:
        for path in sorted((ROOT / "tests" / suite).rglob("test_*.py")):
            file = str(path.relative_to(ROOT))
            named = any(file.startswith(prefix) for prefix in mirrored)
            distance = 0.5 if named else far.get(_module(file))
            if distance is not None:
                found[file] = distance
    return sorted(found, key=lambda file: (found[file], file))


def imports() -> nx.DiGraph:
    """Which module of the checkout imports which."""
    paths = [path for package in (*PACKAGES, "tests") for path in (ROOT / package).rglob("*.py*")]
    files = [(_module(str(path.relative_to(ROOT))), path) for path in paths if path.suffix in (".py", ".pyi")]
    names = {name for name, _ in files}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    for name, path in files:
        for origin, inner, whole in _IMPORT.findall(path.read_text(encoding="utf-8")):
            targets = [whole, origin, *(f"{origin}.{word}" for word in re.findall(r"\w+", inner))]
            graph.add_edges_from((name, target) for target in targets if target in names and target != name)
    return graph


def _module(path: str) -> str:
    return path.removesuffix("i").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def main() -> int:
    """Run them. Returns the exit code of pytest."""
    files = tests_of([path for path in changed() if path.endswith(".py")])
    print(f"{len(files)} test files" + (f", the nearest {FILES_MAX} of them" if len(files) > FILES_MAX else ""))
    if not files:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", "near", *files[:FILES_MAX]]
    return subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

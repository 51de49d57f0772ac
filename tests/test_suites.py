"""Where tests are: what suites have in common is in `tests/support`, a suite never imports another one, and a unit test
is named after the module it tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent


def test_suites_do_not_import_each_other() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        suite = path.relative_to(TESTS).parts[0]
        for module in _imported(path):
            parts = module.split(".")
            if parts[0] == "tests" and parts[1] not in (suite, "support"):
                found.append(f"{path.relative_to(TESTS)} imports {module}")
    assert found == []


def test_unit_tests_are_named_after_their_module() -> None:
    """`kernel/run/move.py` -> `unit/kernel/run/test_move.py`, or `test_move_something.py`. Those of a whole
    package have its name."""
    unnamed = []
    for path in sorted((TESTS / "unit").rglob("test_*.py")):
        folder = ROOT / path.parent.relative_to(TESTS / "unit")
        words = path.stem.removeprefix("test_").split("_")
        names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        if folder.name != names[-1] and not any(
            (folder / f"{name}.py").exists() or (folder / name).is_dir() for name in names
        ):
            unnamed.append(str(path.relative_to(TESTS)))
    assert unnamed == []


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "tests":
            yield from (f"tests.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module

"""What suites have in common is in `tests/support`; a suite never imports another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent


def test_suites_do_not_import_each_other() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        suite = path.relative_to(TESTS).parts[0]
        for module in _imported(path):
            parts = module.split(".")
            if parts[0] == "tests" and parts[1] not in (suite, "support"):
                found.append(f"{path.relative_to(TESTS)} imports {module}")
    assert found == []


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "tests":
            yield from (f"tests.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
